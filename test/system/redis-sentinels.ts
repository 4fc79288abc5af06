import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { choosePorts, createSentinel } from "@conversation-export/local-stack";
import { redisCommand } from "./redis-command.ts";
import { type OwnRedis, startRedis } from "./redis-servers.ts";
import { until } from "./until.ts";

export type Sentinels = {
  readonly url: string;
  primary(): Promise<OwnRedis | undefined>;
  other(server: OwnRedis): OwnRedis;
  replicated(): Promise<void>;
  stop(): Promise<void>;
};

const NAME = "main";
const PATIENCE_MS = 60_000;

const roleOf = (server: OwnRedis): Promise<string> => {
  // A stopped server accepts connections and does not answer.
  const silence = new Promise<string>((resolve) => setTimeout(() => resolve(""), 500).unref());
  return Promise.race([redisCommand(server.url, "ROLE").catch(() => ""), silence]);
};

export const startSentinels = async (settings: readonly string[] = []): Promise<Sentinels> => {
  const folder = await mkdtemp(join(tmpdir(), "test-sentinels-"));
  const first = await startRedis({ settings });
  const second = await startRedis({ settings });
  await redisCommand(second.url, `REPLICAOF 127.0.0.1 ${first.port}`);
  const servers = [first, second];
  const ports = Object.values(await choosePorts({ names: ["a", "b", "c"], fixed: {} }));
  const sentinels = await Promise.all(
    ports.map((port) =>
      createSentinel({
        folder: join(folder, String(port)),
        port,
        name: NAME,
        serverPort: first.port,
        quorum: 2,
        env: process.env,
        log: () => undefined,
        onUnexpectedEnd: () => undefined,
      }),
    ),
  );
  await Promise.all(sentinels.map((sentinel) => sentinel.start()));

  const primary = async (): Promise<OwnRedis | undefined> => {
    for (const server of servers) if ((await roleOf(server)).includes("master")) return server;
    return undefined;
  };
  const replicated = (): Promise<void> =>
    until("one server follows the other", PATIENCE_MS, async () => {
      const roles = await Promise.all(servers.map(roleOf));
      return roles.some((role) => role.includes("slave") && role.includes("connected"));
    });
  await replicated();
  await until("the sentinels know each other and the replica", PATIENCE_MS, async () => {
    const answers = await Promise.all(
      ports.map((port) => redisCommand(`redis://127.0.0.1:${port}`, `SENTINEL CKQUORUM ${NAME}`)),
    );
    const replicas = await Promise.all(
      ports.map((port) => redisCommand(`redis://127.0.0.1:${port}`, `SENTINEL REPLICAS ${NAME}`)),
    );
    return answers.every((one) => one.includes("3 usable")) && replicas.every((one) => one.startsWith("*1"));
  });
  return {
    url: `redis+sentinel://${ports.map((port) => `127.0.0.1:${port}`).join(",")}/${NAME}`,
    primary,
    other: (server) => (server === first ? second : first),
    replicated,
    stop: async () => {
      await Promise.all(sentinels.map((sentinel) => sentinel.kill()));
      await Promise.all(servers.map((server) => server.stop()));
      await rm(folder, { recursive: true, force: true });
    },
  };
};
