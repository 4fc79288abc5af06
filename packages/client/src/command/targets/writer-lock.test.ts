import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { beforeEach, expect, it } from "vitest";
import { CopyError } from "../exit-code.ts";
import { useRoot } from "../root.fixture.ts";
import { lockForWriting } from "./writer-lock.ts";

const path = useRoot();
let file: string;
beforeEach(() => {
  file = path("pull.lock");
});

const QUICK = { beatMs: 20, abandonedMs: 600 };
const lock = (takeOver = false) => lockForWriting(file, { ...QUICK, takeOver });

it("is refused while its holder shows life, and free when it has ended", async () => {
  const first = await lock();
  await expect(lock()).rejects.toBeInstanceOf(CopyError);
  await first.check();
  await first.release();
  const second = await lock();
  await first.release();
  await second.check();
  await second.release();
  expect(readdirSync(path())).toEqual([]);
});

it.each([
  ["", "an empty file"],
  ['{"token":"x","pid":1,"machine":"another","host":"pod-1"}\n', "a process of another machine"],
])("is taken over when nothing touches it: %j, %s", async (text) => {
  writeFileSync(file, text);
  const taken = await lock();
  await expect(taken.check()).resolves.toBeUndefined();
  await taken.release();
});

it("is taken over at once when its process is dead on this machine", async () => {
  const held = await lock();
  const holder = JSON.parse(readFileSync(file, "utf8")) as { pid: number };
  const { pid } = spawnSync(process.execPath, ["--version"]);
  await held.release();
  writeFileSync(file, JSON.stringify({ ...holder, pid }));
  const taken = await lockForWriting(file, { abandonedMs: 1e9 });
  await expect(taken.check()).resolves.toBeUndefined();
  await taken.release();
});

it("stops the one that it was taken from", async () => {
  const first = await lock();
  const second = await lock(true);
  await expect(first.check()).rejects.toThrow("has taken");
  await first.release();
  await second.check();
  await second.release();
});

it("is had by one of many that take an abandoned one over at the same time", async () => {
  writeFileSync(file, "");
  const results = await Promise.allSettled(Array.from({ length: 8 }, () => lock()));
  const locks = results.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const checks = await Promise.allSettled(locks.map((one) => one.check()));
  expect(checks.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});
