import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { identify, waitForEnd } from "./process-identity.ts";
import { findProgram } from "./tied-process.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tied-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const canSignal = process.platform === "linux" && findProgram("setpriv", process.env) !== undefined;

test.each(
  canSignal ? (["signal", "pipe"] as const) : (["pipe"] as const),
)("a process tied by %s ends with its parent, even when that is killed", async (way) => {
  const parentPath = join(folder, "parent.ts");
  const pidPath = join(folder, "pid");
  const tied = {
    command: ["sleep", "60"],
    cwd: folder,
    env: { PATH: process.env["PATH"] },
    logPath: join(folder, "log"),
  };
  writeFileSync(
    parentPath,
    `import { writeFileSync } from "node:fs";
       import { spawnTied } from ${JSON.stringify(join(import.meta.dirname, "tied-process.ts"))};
       const child = spawnTied(${JSON.stringify(tied)}, ${JSON.stringify(way)});
       writeFileSync(${JSON.stringify(`${pidPath}.new`)}, String(child.pid));
       (await import("node:fs")).renameSync(${JSON.stringify(`${pidPath}.new`)}, ${JSON.stringify(pidPath)});
       process.stdin.on("end", () => process.exit()).resume();
       setInterval(() => {}, 1000);`,
  );
  const parent = spawn(process.execPath, [parentPath], { stdio: ["pipe", "inherit", "inherit"] });
  await vi.waitUntil(() => existsSync(pidPath), { timeout: 5_000 });
  const pid = Number(readFileSync(pidPath, "utf8"));
  // Wait until the program has replaced the wrapper.
  if (process.platform === "linux") {
    await vi.waitUntil(() => readFileSync(`/proc/${pid}/comm`, "utf8") === "sleep\n", { timeout: 5_000 });
  }
  const identity = identify(pid);
  expect(identity).toBeDefined();
  parent.kill("SIGKILL");
  await once(parent, "exit");
  expect(identity && (await waitForEnd(identity, 3_000))).toBe(true);
});

test("finds a program on the PATH and only there", () => {
  expect(findProgram("sh", { PATH: "/nowhere:/bin" })).toBe("/bin/sh");
  expect(findProgram("sh", { PATH: "/nowhere:" })).toBeUndefined();
  expect(findProgram("sh", {})).toBeUndefined();
});
