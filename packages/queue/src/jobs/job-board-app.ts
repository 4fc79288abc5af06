import { setTimeout as sleep } from "node:timers/promises";
import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import { fastifyBasicAuth } from "@fastify/basic-auth";
import { fastify, type FastifyInstance } from "fastify";
import { type JobQueues, queuesOf } from "../contract/job-queues.ts";
import { JOB_NAMES } from "../contract/job.ts";
import { createMemoryLimiter } from "../limits/memory-limiter.ts";

const REFUSE_AFTER_MS = 300;
/** Also counted over all addresses, since a host may have any number of them. */
const TRIES = [{ requests: 20, seconds: 60 }];
const TRIES_IN_ALL = [{ requests: 100, seconds: 60 }];
const ALL = "all";
const MAX_ADDRESSES = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;

/** bull-board's page loads a style or font from another host, which would learn of each visit. */
const FOREIGN_LINK = /<link\b[^>]*\bhref="(?:https?:)?\/\/[^>]*>/g;

/** Whatever a later version of the page loads. */
const POLICY = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "object-src 'none'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Too many wrong passwords give 429, even for the right one. */
export const buildJobBoard = async (deps: {
  readonly prefix: string;
  readonly queues: JobQueues;
  readonly isAllowed: (user: string, password: string) => boolean;
}): Promise<FastifyInstance> => {
  const { prefix, queues, isAllowed } = deps;
  const server = fastify({ requestTimeout: REQUEST_TIMEOUT_MS, forceCloseConnections: true });
  const tries = createMemoryLimiter({ maxKeys: MAX_ADDRESSES });
  await server.register(fastifyBasicAuth, {
    authenticate: { realm: "jobs" },
    validate: async (user, password, { ip }, reply) => {
      const refused = [tries.peek(ip, TRIES), tries.peek(ALL, TRIES_IN_ALL)].find(({ allowed }) => !allowed);
      if (refused !== undefined) {
        reply.header("retry-after", refused.retryAfter);
        throw Object.assign(new Error("too many wrong passwords"), { statusCode: 429 });
      }
      if (isAllowed(user, password)) return;
      tries.consume(ip, TRIES);
      tries.consume(ALL, TRIES_IN_ALL);
      await sleep(REFUSE_AFTER_MS);
      throw new Error("wrong user or password");
    },
  });
  server.addHook("onRequest", server.basicAuth);
  server.addHook("onRequest", async ({ method }, reply) => {
    if (method !== "GET" && method !== "HEAD") {
      return reply.code(405).header("allow", "GET, HEAD").send("method not allowed\n");
    }
    return undefined;
  });
  server.addHook("onSend", async (_request, reply, payload) => {
    reply.headers({ "content-security-policy": POLICY, "cache-control": "no-store" });
    const isPage = String(reply.getHeader("content-type")).startsWith("text/html");
    return isPage && typeof payload === "string" ? payload.replaceAll(FOREIGN_LINK, "") : payload;
  });
  const serverAdapter = new FastifyAdapter();
  serverAdapter.setBasePath(prefix);
  createBullBoard({
    queues: JOB_NAMES.flatMap(queuesOf).map(
      (name) => new BullMQAdapter(queues.of(name), { readOnlyMode: true }),
    ),
    serverAdapter,
    options: { uiConfig: { boardTitle: "Jobs" } },
  });
  await server.register(serverAdapter.registerPlugin(), { prefix });
  await server.ready();
  return server;
};
