import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import { fastifyBasicAuth } from "@fastify/basic-auth";
import type { Logger, RedisServer } from "@conversation-export/runtime";
import { fastify, type FastifyInstance } from "fastify";
import { createJobQueues, partQueueOf } from "./job-queues.ts";
import { JOB_NAMES } from "./job.ts";
import { clientOf, createRedis } from "./redis.ts";

const REFUSE_AFTER_MS = 300;

/** Pages that show the queues, to be mounted on an HTTP server. */
export type JobBoard = {
  /** The path below which requests are for the board. */
  readonly prefix: string;
  /** Waits for Redis. */
  start(): Promise<void>;
  stop(): Promise<void>;
  handle(request: IncomingMessage, response: ServerResponse): void;
};

/** The board behind basic authentication. It shows and changes nothing: acting is the command line's. */
export const createJobBoard = (
  deps: RedisServer & {
    readonly user: string;
    readonly password: string;
    readonly log: Logger;
  },
): JobBoard => {
  const prefix = "/board";
  const expected = digest(deps.user, deps.password);
  const redis = createRedis({ ...deps, log: deps.log.child({}, { level: "error" }) });
  const queues = createJobQueues(clientOf(redis));
  let app: FastifyInstance | undefined;

  const build = async (): Promise<FastifyInstance> => {
    const server = fastify();
    await server.register(fastifyBasicAuth, {
      authenticate: { realm: "jobs" },
      validate: async (user, password) => {
        if (timingSafeEqual(digest(user, password), expected)) return;
        await sleep(REFUSE_AFTER_MS);
        throw new Error("wrong user or password");
      },
    });
    server.addHook("onRequest", server.basicAuth);
    server.addHook("onSend", async (_request, reply) => {
      reply.headers({ "content-security-policy": "frame-ancestors 'none'", "cache-control": "no-store" });
    });
    const serverAdapter = new FastifyAdapter();
    serverAdapter.setBasePath(prefix);
    const names = JOB_NAMES.flatMap((name) => [name, partQueueOf(name)]);
    createBullBoard({
      queues: names.map((name) => new BullMQAdapter(queues.of(name), { readOnlyMode: true })),
      serverAdapter,
      options: { uiConfig: { boardTitle: "Jobs" } },
    });
    await server.register(serverAdapter.registerPlugin(), { prefix });
    await server.ready();
    return server;
  };

  return {
    prefix,
    start: async () => {
      await redis.start();
      app = await build();
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

/** Of equal length, whatever was typed. */
const digest = (user: string, password: string): Buffer =>
  createHash("sha256")
    .update(JSON.stringify([user, password]))
    .digest();
