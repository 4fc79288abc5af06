import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { choosePorts, createRedisServer, type Server, takePort } from "@conversation-export/local-stack";

export type OwnRedis = Server & { readonly port: number; readonly url: string };

/** The bus, 10,000 above, must stay below the source ports of connections. */
export const chooseClusterPort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(20_000, 22_000);
    if ((await takePort(port)) && (await takePort(port + 10_000))) return port;
  }
};

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
