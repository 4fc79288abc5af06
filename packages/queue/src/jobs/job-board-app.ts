import { setTimeout as sleep } from "node:timers/promises";
import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import { fastifyBasicAuth } from "@fastify/basic-auth";
import { fastify, type FastifyInstance } from "fastify";
import { type JobQueues, partQueueOf } from "../contract/job-queues.ts";
import { JOB_NAMES } from "../contract/job.ts";

const REFUSE_AFTER_MS = 300;

/** Builds the application that serves the board below `prefix` to users that `isAllowed` accepts. */
export const buildJobBoard = async (deps: {
  readonly prefix: string;
  readonly queues: JobQueues;
  readonly isAllowed: (user: string, password: string) => boolean;
}): Promise<FastifyInstance> => {
  const { prefix, queues, isAllowed } = deps;
  const server = fastify();
  await server.register(fastifyBasicAuth, {
    authenticate: { realm: "jobs" },
    validate: async (user, password) => {
      if (isAllowed(user, password)) return;
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
