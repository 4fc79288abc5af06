import { setTimeout as sleep } from "node:timers/promises";
import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import { fastifyBasicAuth } from "@fastify/basic-auth";
import { fastify, type FastifyInstance } from "fastify";
import { type JobQueues, partQueueOf } from "../contract/job-queues.ts";
import { JOB_NAMES } from "../contract/job.ts";
import { createMemoryLimiter } from "../limits/memory-limiter.ts";

const REFUSE_AFTER_MS = 300;
/** Wrong passwords of one address. */
const TRIES = [{ requests: 20, seconds: 60 }];
const MAX_ADDRESSES = 10_000;

/**
 * Builds the application that serves the board below `prefix` to users that `isAllowed` accepts. An address
 * with too many wrong passwords gets 429, also for the right one.
 */
export const buildJobBoard = async (deps: {
  readonly prefix: string;
  readonly queues: JobQueues;
  readonly isAllowed: (user: string, password: string) => boolean;
}): Promise<FastifyInstance> => {
  const { prefix, queues, isAllowed } = deps;
  const server = fastify();
  const tries = createMemoryLimiter({ maxKeys: MAX_ADDRESSES });
  await server.register(fastifyBasicAuth, {
    authenticate: { realm: "jobs" },
    validate: async (user, password, { ip }, reply) => {
      const { allowed, retryAfter } = tries.peek(ip, TRIES);
      if (!allowed) {
        reply.header("retry-after", retryAfter);
        throw Object.assign(new Error("too many wrong passwords"), { statusCode: 429 });
      }
      if (isAllowed(user, password)) return;
      tries.consume(ip, TRIES);
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
