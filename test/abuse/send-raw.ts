import { connect } from "node:net";

/** `status` is null: closed without an answer. */
export type RawAnswer = { readonly status: number | null; readonly text: string };

/** Rejects after `deadlineMs`. */
export const sendRaw = (
  port: number,
  parts: readonly (string | Buffer)[],
  options: { readonly hangUp?: boolean; readonly deadlineMs: number },
): Promise<RawAnswer> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    const chunks: Buffer[] = [];
    const late = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no end within ${options.deadlineMs} ms`));
    }, options.deadlineMs);
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    // A rejection may reset the connection while parts are still on their way.
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(late);
      const text = Buffer.concat(chunks).toString("latin1");
      const status = /^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1];
      resolve({ status: status === undefined ? null : Number(status), text });
    });
    socket.on("connect", () => {
      for (const part of parts) socket.write(typeof part === "string" ? Buffer.from(part, "latin1") : part);
      if (options.hangUp === true) socket.end();
    });
  });
