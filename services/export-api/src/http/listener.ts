import { lookup } from "node:dns/promises";
import type { AddressInfo } from "node:net";
import type { Logger } from "@conversation-export/runtime";
import type { FastifyInstance } from "fastify";

export type Listener = {
  start(): Promise<{ port: number }>;
  /** Cuts answers off after `drainMs`. */
  stop(): Promise<void>;
  ready(): true | string;
};

export const createListener = (deps: {
  app: FastifyInstance;
  host: string;
  port: number;
  drainMs: number;
  log: Logger;
}): Listener => {
  const { app, host, port, drainMs, log } = deps;
  let state: true | string = "not listening yet";
  return {
    start: async () => {
      // For localhost Fastify would make a server per address.
      const { address } = await lookup(host);
      await app.listen({ host: address, port });
      const bound = (app.server.address() as AddressInfo).port;
      state = true;
      log.info({ host, port: bound }, "export API listens");
      return { port: bound };
    },
    stop: async () => {
      state = "draining";
      const cut = setTimeout(() => {
        log.warn({ drainMs }, "connections still open at the deadline are cut");
        app.server.closeAllConnections();
      }, drainMs);
      try {
        await app.close();
      } finally {
        clearTimeout(cut);
      }
    },
    ready: () => state,
  };
};
