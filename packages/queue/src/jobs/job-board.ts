import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger, RedisServer } from "@conversation-export/runtime";
import type { FastifyInstance } from "fastify";
import { createJobQueues } from "../contract/job-queues.ts";
import { clientOf, createRedis } from "../redis/redis.ts";

/** Pages that show the queues, to be mounted on an HTTP server. */
export type JobBoard = {
  /** Path prefix of the board. */
  readonly prefix: string;
  /** Waits for Redis. */
  start(): Promise<void>;
  stop(): Promise<void>;
  handle(request: IncomingMessage, response: ServerResponse): void;
};

/** The board, read-only and behind basic authentication; operators act by the command line. */
export const createJobBoard = (
  deps: RedisServer & {
    readonly user: string;
    /** Each of them is accepted. */
    readonly passwords: readonly string[];
    readonly log: Logger;
  },
): JobBoard => {
  const prefix = "/board";
  const expected = deps.passwords.map((password) => digest(deps.user, password));
  const redis = createRedis({ ...deps, log: deps.log.child({}, { level: "error" }) });
  const queues = createJobQueues(clientOf(redis));
  let app: FastifyInstance | undefined;

  return {
    prefix,
    start: async () => {
      await redis.start();
      // Loaded here, since the modules of the board would delay the start of every process that uses the
      // queue.
      const { buildJobBoard } = await import("./job-board-app.ts");
      const isAllowed = (user: string, password: string): boolean => {
        const given = digest(user, password);
        return expected.some((one) => timingSafeEqual(given, one));
      };
      app = await buildJobBoard({ prefix, queues, isAllowed });
    },
    stop: async () => {
      await redis.stop();
      await app?.close();
      await queues.close();
    },
    handle: (request, response) => {
      if (app === undefined) response.writeHead(503, { "content-type": "text/plain" }).end("starting\n");
      else app.routing(request, response);
    },
  };
};

/** Digests have equal length, as timingSafeEqual needs. */
const digest = (user: string, password: string): Buffer =>
  createHash("sha256")
    .update(JSON.stringify([user, password]))
    .digest();
