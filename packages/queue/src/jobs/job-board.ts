import { createHash, timingSafeEqual } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { Logger, RedisServer } from "@conversation-export/runtime";
import type { FastifyInstance } from "fastify";
import { createJobQueues } from "../contract/job-queues.ts";
import { clientOf, createRedis } from "../redis/redis.ts";

/** At `/board`, read-only: operators act by the command line. */
export const createJobBoard = (
  deps: RedisServer & {
    readonly host: string;
    readonly port: number;
    readonly user: string;
    readonly passwords: readonly string[];
    readonly log: Logger;
  },
) => {
  const { host, port, log } = deps;
  const expected = deps.passwords.map((password) => digest(deps.user, password));
  const redis = createRedis({ ...deps, log: log.child({}, { level: "error" }) });
  const queues = createJobQueues(clientOf(redis));
  let app: FastifyInstance | undefined;

  return {
    start: async (): Promise<void> => {
      await redis.start();
      // The board's modules would delay every process that uses the queue.
      const { buildJobBoard } = await import("./job-board-app.ts");
      const isAllowed = (user: string, password: string): boolean => {
        const given = digest(user, password);
        return expected.some((one) => timingSafeEqual(given, one));
      };
      app = await buildJobBoard({ prefix: "/board", queues, isAllowed });
      await app.listen({ host, port });
      log.info({ host, port: (app.server.address() as AddressInfo).port }, "board listens");
    },
    stop: async (): Promise<void> => {
      await app?.close();
      await redis.stop();
      await queues.close();
    },
  };
};

/** timingSafeEqual needs equal lengths. */
const digest = (user: string, password: string): Buffer =>
  createHash("sha256")
    .update(JSON.stringify([user, password]))
    .digest();
