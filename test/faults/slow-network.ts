import { connect, createServer, type Socket } from "node:net";
import { Transform, type TransformCallback } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { listen } from "../system/listen.ts";
import { throughPort } from "./through-port.ts";

export type SlowNetwork = {
  through(url: string): string;
  close(): Promise<void>;
};

/** Keeps the order; `delayOf` in ms. */
const delaying = (delayOf: () => number): Transform =>
  new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      void sleep(delayOf()).then(() => done(null, chunk));
    },
  });

export const startSlowNetwork = async (deps: {
  readonly target: { readonly host: string; readonly port: number };
  readonly delayOf: () => number;
}): Promise<SlowNetwork> => {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(deps.target);
    const delayed = delaying(deps.delayOf);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => sockets.delete(socket));
    }
    // Bytes sent before their sender died still arrive.
    client.on("close", () => delayed.end());
    upstream.on("close", () => client.destroy());
    client.pipe(delayed).pipe(upstream);
    upstream.pipe(client);
  });
  const { port, close } = await listen(server);
  return {
    through: (url) => throughPort(url, port),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await close();
    },
  };
};
