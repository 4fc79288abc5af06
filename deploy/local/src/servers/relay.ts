import { connect, createServer, type Server as Listener, type Socket } from "node:net";

/** Passes connections on to another port of the same host. */
export type Relay = {
  listen(): Promise<void>;
  /** Refuses connections and ends those that are open. */
  close(): Promise<void>;
};

/**
 * Stands between the servers of a local cluster. A server that cancels a query resets its connection, which
 * would crash libchdb on the other side; the relay turns the reset into a normal close.
 */
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
      // Reads what is still in flight; unread data would turn the close into a reset.
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
        // The relay does not keep this process alive.
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
