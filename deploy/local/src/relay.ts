import { connect, createServer, type Server as Listener, type Socket } from "node:net";

/** Passes connections on to another port of the same host. */
export type Relay = {
  listen(): Promise<void>;
  /** Refuses connections and ends those that are open. */
  close(): Promise<void>;
};

/**
 * Between the servers of a local cluster. A server that gives up a query resets its connection, which ends the process of
 * the library on the other side; here it is closed as if nothing more had to be said.
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
      // What is still on its way is read, or the end would be a reset as well.
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
        // It serves the processes of this one, and does not keep it alive.
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
