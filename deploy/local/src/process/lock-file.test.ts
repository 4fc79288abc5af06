import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { acquireLock, LockedError, lockOwner, waitForLock } from "./lock-file.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lock-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

test("refuses a second holder and names the first", () => {
  const path = join(folder, "lock");
  const lock = acquireLock(path);
  expect(() => acquireLock(path)).toThrow(LockedError);
  expect(() => acquireLock(path)).toThrow(String(process.pid));
  expect(lockOwner(path)?.pid).toBe(process.pid);
  lock.release();
  expect(lockOwner(path)).toBeUndefined();
  acquireLock(path).release();
  expect(readdirSync(folder)).toEqual([]);
});

test.each([
  ["a process that has ended", JSON.stringify({ pid: 2 ** 22 + 1, startedAt: "5" })],
  ["a process whose number was used again", JSON.stringify({ pid: process.pid, startedAt: "5" })],
  ["nothing readable", "{"],
])("takes over the lock of %s", (_name, text) => {
  const path = join(folder, "lock");
  writeFileSync(path, text);
  expect(lockOwner(path)).toBeUndefined();
  acquireLock(path);
  expect(lockOwner(path)?.pid).toBe(process.pid);
  expect(readdirSync(folder)).toEqual(["lock"]);
});

test("a released lock does not remove that of the next holder", () => {
  const path = join(folder, "lock");
  const first = acquireLock(path);
  first.release();
  acquireLock(path);
  first.release();
  expect(lockOwner(path)?.pid).toBe(process.pid);
});

test("waits for a lock, up to its deadline", async () => {
  const path = join(folder, "lock");
  const first = acquireLock(path);
  await expect(waitForLock(path, 50)).rejects.toThrow(LockedError);
  const waiting = waitForLock(path, 5_000);
  first.release();
  (await waiting).release();
});
