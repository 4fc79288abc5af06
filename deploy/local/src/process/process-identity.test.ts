import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import {
  identify,
  isAlive,
  isStopped,
  parseIdentity,
  parseProcStat,
  waitForEnd,
} from "./process-identity.ts";

test("reads state and start time after a command name with spaces and parentheses", () => {
  const line = "42 (a (b) c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 11 0 987654 1 2 3";
  expect(parseProcStat(line)).toEqual({ state: "S", startedAt: "987654" });
});

test("refuses a line that is too short", () => {
  expect(parseProcStat("42 (a) S 1")).toBeUndefined();
});

test("a process is alive until it ends, and never under another start time", async () => {
  const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60000)"]);
  const identity = identify(child.pid ?? 0);
  expect(identity).toBeDefined();
  if (!identity) return;
  expect(isAlive(identity)).toBe(true);
  expect(isAlive({ ...identity, startedAt: "1" })).toBe(false);
  expect(await waitForEnd(identity, 60)).toBe(false);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await waitForEnd(identity, 1_000)).toBe(true);
  expect(identify(identity.pid)).toBeUndefined();
});

test("parses its own rendering and nothing else", () => {
  expect(parseIdentity(JSON.stringify({ pid: 7, startedAt: "9" }))).toEqual({ pid: 7, startedAt: "9" });
  for (const text of ["", "7", "null", '{"pid":"7","startedAt":"9"}', "{"]) {
    expect(parseIdentity(text)).toBeUndefined();
  }
});

test("tells a process that was stopped from one that runs", async () => {
  const child = spawn("sleep", ["60"]);
  const { pid } = child;
  if (pid === undefined) throw new Error("no process");
  try {
    expect(isStopped(pid)).toBe(false);
    child.kill("SIGSTOP");
    await expect.poll(() => isStopped(pid)).toBe(true);
    child.kill("SIGCONT");
    await expect.poll(() => isStopped(pid)).toBe(false);
  } finally {
    child.kill("SIGKILL");
  }
});
