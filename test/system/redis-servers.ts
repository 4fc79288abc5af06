import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { choosePorts, createRedisServer, type Server, takePort } from "@conversation-export/local-stack";

/** A server of Redis beside the local stack, with the users of the services. */
export type OwnRedis = Server & { readonly port: number; readonly url: string };

/**
 * Chooses the port of a server in cluster mode. Its bus listens 10,000 above, and must stay below the range of
 * source ports of connections, any of which may hold that port when the server starts.
 */
export const chooseClusterPort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(20_000, 22_000);
    if ((await takePort(port)) && (await takePort(port + 10_000))) return port;
  }
};

/**
 * Starts a server in a temporary folder.
 * @param options.settings further settings, as its command line takes them
 * @param options.port a free one by default
 * @param options.program the program to run instead of the installed or downloaded Redis
 */
export const startRedis = async (
  options: { readonly settings?: readonly string[]; readonly port?: number; readonly program?: string } = {},
): Promise<OwnRedis> => {
  const folder = await mkdtemp(join(tmpdir(), "test-redis-"));
  const port = options.port ?? (await choosePorts({ names: ["redis"], fixed: {} })).redis;
  const server = await createRedisServer({
    ...options,
    folder,
    port,
    env: process.env,
    log: () => undefined,
    onUnexpectedEnd: () => undefined,
  });
  await server.start();
  return {
    get pid() {
      return server.pid;
    },
    start: server.start,
    kill: server.kill,
    stop: async () => {
      await server.kill();
      await rm(folder, { recursive: true, force: true });
    },
    port,
    url: `redis://127.0.0.1:${port}`,
  };
};
