import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { EXIT } from "./explain/exit-code.ts";

// What only a process shows; others: test/integration/ops.test.ts, ops-jobs.test.ts.

/** Never answers. */
const silent = createServer();
afterAll(() => void silent.close());

type Started = { readonly child: ChildProcess; readonly ended: Promise<object> };

const start = (words: readonly string[], env: Readonly<Record<string, string>> = {}): Started => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "main.ts"), ...words], {
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "../../../.cache/compile"), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const ended = once(child, "close").then(([code, signal]: unknown[]) => ({ code, signal, out, err }));
  return { child, ended };
};

it("ends with 2 and the usage after wrong words", async () => {
  expect(await start(["migrate", "again"]).ended).toEqual({
    code: EXIT.usage,
    signal: null,
    out: "",
    err: expect.stringMatching(/^error: too many arguments.*\n\(--help shows the usage\)\n$/s),
  });
});

it("lets no text of others act on the terminal", async () => {
  const { err } = (await start(["no\u001b]0;title\u0007\u202esuch"]).ended) as { err: string };
  expect(err).toContain("'no\\u001b]0;title\\u0007\\u202esuch'");
});

it("takes little processor time to show its help, which loads no command", async () => {
  const hook = 'process.on("exit", () => console.error(JSON.stringify(process.cpuUsage())))';
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` };
  const { code, out, err } = (await start(["--help"], env).ended) as {
    code: number;
    out: string;
    err: string;
  };
  expect(code).toBe(EXIT.done);
  expect(out).toMatch(/^ {2}backfill {2,}compute the records of a window again/m);
  const { user, system } = JSON.parse(err) as { user: number; system: number };
  expect((user + system) / 1e6).toBeLessThan(0.5);
});

it("ends with the code of what failed and one line", async () => {
  const env = { CLICKHOUSE_URL: "http://migrator:secret@127.0.0.1:9/export" };
  expect(await start(["clients", "list"], env).ended).toEqual({
    code: EXIT.away,
    signal: null,
    out: "",
    err: expect.stringMatching(/^export-ops: ClickHouse does not answer at 127\.0\.0\.1:9 [^\n]*\n$/),
  });
});

it("ends with 0 and without a word when its reader closes the pipe", async () => {
  const { child, ended } = start(["schemas"]);
  child.stdout?.destroy();
  expect(await ended).toEqual({ code: EXIT.done, signal: null, out: "", err: "" });
});

it("keeps the code of a failure when its reader closes the pipe", async () => {
  const { child, ended } = start(["doctor"]);
  child.stdout?.destroy();
  expect(await ended).toMatchObject({ code: EXIT.failed, signal: null });
});

it.skipIf(!existsSync("/dev/full"))("says that its output was lost, and fails", async () => {
  const full = openSync("/dev/full", "w");
  const child = spawn(process.execPath, [join(import.meta.dirname, "main.ts"), "schemas"], {
    stdio: ["ignore", full, "pipe"],
  });
  closeSync(full);
  let err = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (err += text));
  expect(await once(child, "close")).toEqual([EXIT.failed, null]);
  expect(err).toMatch(/^export-ops: writing to standard output failed: ENOSPC[^\n]*\n$/);
});

it("says in its log that SIGTERM ended it", async () => {
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const url = `http://migrator:secret@127.0.0.1:${port}/export`;
  const { child, ended } = start(["migrate"], { OPERATOR: "test", CLICKHOUSE_URL: url });
  const [socket] = (await once(silent, "connection")) as [{ destroy(): void }];
  child.kill("SIGTERM");
  const err = "export-ops: ended by SIGTERM\n";
  expect(await ended).toEqual({ code: EXIT.terminated, signal: null, out: "", err });
  socket.destroy();
});
