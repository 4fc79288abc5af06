import { type IncomingMessage, request } from "node:http";

const target = (url: string): { host: string; port: string; database: string; auth: string } => {
  const parsed = new URL(url);
  return {
    host: parsed.hostname,
    port: parsed.port,
    database: parsed.pathname.slice(1),
    auth: `${decodeURIComponent(parsed.username)}:${decodeURIComponent(parsed.password)}`,
  };
};

export type Answer = { readonly bytes: number; readonly text: string };

export type SqlOptions = {
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
};

export const openSql = (url: string, sql: string, options: SqlOptions = {}): Promise<IncomingMessage> => {
  const { host, port, database, auth } = target(url);
  // Permits rows of the past.
  const search = new URLSearchParams({ database, log_comment: "stamped" });
  for (const [name, value] of Object.entries(options.settings ?? {})) search.set(name, String(value));
  for (const [name, value] of Object.entries(options.parameters ?? {}))
    search.set(`param_${name}`, String(value));
  return new Promise((resolve, reject) => {
    const path = `/?${search.toString()}`;
    const headers = options.headers ?? {};
    const sent = request({ host, port, method: "POST", path, auth, headers }, (response) => {
      if (response.statusCode === 200) return resolve(response);
      const kept: Buffer[] = [];
      response.on("data", (chunk: Buffer) => kept.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        reject(new Error(`${response.statusCode}: ${Buffer.concat(kept).toString().slice(0, 500)}`));
      });
    });
    sent.on("error", reject);
    sent.end(sql);
  });
};

/** `keep: false`: bytes are only counted. */
export const runSql = async (
  url: string,
  sql: string,
  options: SqlOptions & { readonly keep?: boolean } = {},
): Promise<Answer> => {
  let bytes = 0;
  const kept: Buffer[] = [];
  for await (const chunk of (await openSql(url, sql, options)) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (options.keep !== false) kept.push(chunk);
  }
  return { bytes, text: Buffer.concat(kept).toString() };
};
