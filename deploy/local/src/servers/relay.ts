import { connect, createServer, type Server as Listener, type Socket } from "node:net";

export type Relay = {
  listen(): Promise<void>;
  close(): Promise<void>;
};

/** A cancelled query resets its connection, which crashes libchdb; the relay closes it normally. */
export function createRelay(deps: {
  readonly host: string;
  readonly port: number;
  readonly targetPort: number;
}): Relay {
  const { host, port, targetPort } = deps;
  const open = new Set<Socket>();
  let listener: Listener | undefined;

  function keep(socket: Socket): void {
    open.add(socket);
    socket.setNoDelay(true);
    socket.once("close", () => open.delete(socket));
  }

  function pass(client: Socket): void {
    const target = connect({ host, port: targetPort, allowHalfOpen: true });
    keep(client);
    keep(target);
    client.on("data", (chunk: Buffer) => {
      if (!target.write(chunk)) client.pause();
    });
    target.on("drain", () => client.resume());
    target.on("data", (chunk: Buffer) => {
      if (!client.destroyed && !client.write(chunk)) target.pause();
    });
    client.on("drain", () => target.resume());
    client.on("error", () => undefined);
    client.on("close", () => {
      target.end();
      // Unread data would turn the close into a reset.
      target.resume();
    });
    target.on("error", () => client.destroy());
    target.on("end", () => {
      client.end();
      target.end();
    });
    target.on("close", () => client.destroy());
  }

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        listener = createServer(pass);
        listener.once("error", reject);
        listener.listen({ host, port }, resolve);
        listener.unref();
      }),
    close: () =>
      new Promise((resolve) => {
        for (const socket of open) socket.destroy();
        if (listener === undefined) resolve();
        else listener.close(() => resolve());
        listener = undefined;
      }),
  };
}
