import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type ClickhouseUser, type Stack, startStack } from "@conversation-export/local-stack";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { redisCommand } from "../system/redis-command.ts";

const projectFolder = join(import.meta.dirname, "..", "..");
const stackModule = join(projectFolder, "deploy", "local", "src", "index.ts");
const commandLine = join(projectFolder, "deploy", "local", "src", "cli.ts");
const deadlineMs = 300_000;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "local-stack-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A zombie does not count as running. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    return code === "ENOENT" && path !== undefined && process.platform !== "linux";
  }
}

async function query(stack: Stack, user: ClickhouseUser, sql: string): Promise<string> {
  const url = new URL(stack.clickhouse.url(user));
  const answered = await fetch(`${url.origin}/?database=${url.pathname.slice(1)}`, {
    method: "POST",
    body: sql,
    headers: {
      "x-clickhouse-user": url.username,
      "x-clickhouse-key": decodeURIComponent(url.password),
      connection: "close",
    },
  });
  return (await answered.text()).trim();
}

const redis = (stack: Stack, line: string): Promise<string> => redisCommand(stack.redis.url, line);

async function apiVersions(stack: Stack): Promise<number> {
  const [host, port] = (stack.kafka.brokers[0] ?? "").split(":");
  // Length, request 18, version 0, correlation 7, no client name.
  const socket = connect({ host: host ?? "", port: Number(port) }, () =>
    socket.write(Buffer.from([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff])),
  );
  try {
    const [bytes] = (await once(socket, "data")) as [Buffer];
    expect(bytes.readInt32BE(4)).toBe(7);
    return bytes.readInt16BE(8);
  } finally {
    socket.destroy();
  }
}

describe("servers", () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ dir: join(folder, "a") });
  }, deadlineMs);
  afterAll(() => stack?.kill());

  test(
    "a server that is killed comes back on its port with its data",
    async () => {
      await query(stack, "migrator", "CREATE TABLE kept (a Int64) ENGINE = MergeTree ORDER BY a");
      await query(stack, "migrator", "INSERT INTO kept SELECT number FROM numbers(1000)");
      expect(await redis(stack, "SET kept 1")).toBe("+OK");
      const brokers = [...stack.kafka.brokers];
      const servers = [stack.clickhouse, stack.redis, stack.kafka];
      const pids = servers.map((server) => server.pid);

      await Promise.all(servers.map((server) => server.kill()));
      expect(servers.map((server) => server.pid)).toEqual([undefined, undefined, undefined]);
      for (const pid of pids) expect(isRunning(pid ?? 0)).toBe(false);
      await expect(query(stack, "reader", "SELECT 1")).rejects.toThrow("fetch failed");

      await Promise.all(servers.map((server) => server.start()));
      expect(servers.map((server) => server.pid)).not.toEqual(pids);
      expect(await query(stack, "migrator", "SELECT count(), sum(a) FROM kept")).toBe("1000\t499500");
      expect(await redis(stack, "GET kept")).toContain("1");
      expect(stack.kafka.brokers).toEqual(brokers);
      expect(await apiVersions(stack)).toBe(0);
    },
    deadlineMs,
  );

  test("a second stack on the same folder is refused", async () => {
    await expect(startStack({ dir: join(folder, "a"), servers: ["redis"] })).rejects.toThrow(
      `is in use by the stack of process ${process.pid}`,
    );
    expect(await redis(stack, "PING")).toBe("+PONG");
  });

  test("a port in use is named, and nothing is left running", async () => {
    const port = stack.clickhouse.port;
    const dir = join(folder, "b");
    await expect(startStack({ dir, ports: { redis: port }, servers: ["redis"] })).rejects.toThrow(
      `port ${port} (redis) of 127.0.0.1 is in use`,
    );
    const other = await startStack({ dir, servers: ["redis"] });
    expect(await redis(other, "PING")).toBe("+PONG");
    expect(() => other.kafka).toThrow("kafka is not among the servers");
    await other.stop();
  });
});

test(
  "nothing is left when the process that started the servers is killed, and the next start finds the data",
  async () => {
    const dir = join(folder, "c");
    const parentPath = join(folder, "parent.ts");
    writeFileSync(
      parentPath,
      `import { startStack } from ${JSON.stringify(stackModule)};
       const stack = await startStack({ dir: ${JSON.stringify(dir)} });
       process.send?.([stack.kafka.pid, stack.clickhouse.pid, stack.redis.pid]);
       process.on("disconnect", () => process.exit());
       setInterval(() => undefined, 1000);`,
    );
    const parent = spawn(process.execPath, [parentPath], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const [pids] = (await once(parent, "message")) as [number[]];
    expect(pids).toHaveLength(3);
    for (const pid of pids) expect(isRunning(pid)).toBe(true);
    parent.kill("SIGKILL");
    await vi.waitUntil(() => !pids.some(isRunning), { timeout: 20_000 });

    const next = await startStack({ dir, servers: ["clickhouse", "redis"] });
    expect(await query(next, "migrator", "SELECT 1")).toBe("1");
    await next.stop();
  },
  deadlineMs,
);

describe("the command line", () => {
  const runToEnd = async (...words: string[]): Promise<{ stdout: string; code: number }> => {
    const options = ["--folder", join(folder, "local"), "--services", join(folder, "services")];
    const env = { ...process.env, LINK_BOUNDS: "advancing" };
    return promisify(execFile)(process.execPath, [commandLine, ...words, ...options], { env }).then(
      ({ stdout }) => ({ stdout, code: 0 }),
      (error: { stdout: string; code: number }) => error,
    );
  };
  const run = async (...words: string[]): Promise<string> => (await runToEnd(...words)).stdout;
  const local = (name: string): string => join(folder, "local", name);
  const pidOf = (name: string): number => Number(readFileSync(local(`${name}.pid`), "utf8"));
  const readEnv = (): Record<string, string> =>
    Object.fromEntries(
      readFileSync(local("env"), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );

  beforeAll(() => {
    const service = `
      import { createServer } from "node:http";
      createServer((request, response) => {
        response.statusCode = request.url === "/ready" ? 200 : 404;
        response.end(JSON.stringify(process.env));
      }).listen(Number(process.env.METRICS_PORT), "127.0.0.1");
      process.on("SIGTERM", () => process.exit(0));`;
    const ops = `
      const [first, second] = process.argv.slice(2);
      console.error("ran", first, second);
      if (first === "clients") { console.error("this client exists already"); process.exit(1); }
      if (first === "keys") console.log(JSON.stringify({ key: "secret" }));`;
    for (const [name, text] of Object.entries({
      ingest: service,
      "export-api": service,
      jobs: service,
      ops,
    })) {
      mkdirSync(join(folder, "services", name, "src"), { recursive: true });
      writeFileSync(join(folder, "services", name, "src", "main.ts"), text);
    }
  });
  afterAll(async () => {
    await run("down");
  });

  test(
    "up, a killed service, restart, down",
    async () => {
      expect(await runToEnd("status")).toMatchObject({ code: 3 });
      expect(await run("up")).toContain("export API: http://127.0.0.1:");
      expect(await runToEnd("status")).toMatchObject({ code: 0, stdout: expect.stringContaining("all up") });
      const env = readEnv();
      expect(statSync(local("env")).mode & 0o777).toBe(0o600);
      expect(env).toMatchObject({
        EXPORT_API_KEY: "secret",
        CLIENT_ID: "demo-client",
        TOPIC_END_USERS: "end-users",
      });
      expect(env["EXPORT_API_URL"]).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api$/);
      expect(env["CLICKHOUSE_URL"]).toMatch(
        /^http:\/\/migrator:[\w-]+@127\.0\.0\.1:\d+\/conversation_export$/,
      );
      expect(readFileSync(local("ops.log"), "utf8")).toMatch(/ran migrate.*\n.*ran topics create\n/);

      const ingest = pidOf("ingest");
      process.kill(ingest, "SIGKILL");
      await vi.waitUntil(() => !existsSync(local("ingest.pid")), { timeout: 20_000 });
      const { stdout, code } = await runToEnd("status");
      expect(stdout).toMatch(/^ingest +down[^]*^down: ingest /m);
      expect(code).toBe(1);
      expect(await run("restart", "ingest")).toContain("ingest is ready");
      expect(pidOf("ingest")).not.toBe(ingest);
      const reported = (await (await fetch(env["INGEST_METRICS_URL"] ?? "")).json()) as Record<
        string,
        string
      >;
      expect(reported).toMatchObject({
        LINK_BOUNDS: "advancing",
        CLICKHOUSE_URL: env["CLICKHOUSE_WRITER_URL"],
      });
      expect(await run("up")).toContain("already up");

      const pids = ["ingest", "export-api", "jobs", "stack"].map(pidOf);
      await run("down");
      expect(pids.filter(isRunning)).toEqual([]);
      expect(existsSync(local("stack.pid"))).toBe(false);
      expect(await run("down")).toContain("nothing was up");
    },
    deadlineMs,
  );
});
