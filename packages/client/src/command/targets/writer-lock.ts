import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { link, readlink, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { CopyError, isCode } from "../exit-code.ts";
import { readIfThere } from "./durable-file.ts";

const BEAT_MS = 5_000;
/** By the waiting process's clock. */
const ABANDONED_MS = 30_000;

export type LockOptions = {
  readonly takeOver?: boolean;
  readonly beatMs?: number;
  readonly abandonedMs?: number;
};

export type WriterLock = {
  /** @throws CopyError once another process has the lock */
  check(): Promise<void>;
  release(): Promise<void>;
};

type Holder = {
  readonly token: string;
  readonly pid: number;
  readonly machine: string;
  readonly host: string;
};

/** Process ids are unique only within a boot and PID namespace. */
const machineOf = async (): Promise<string> => {
  if (process.platform !== "linux") return hostname();
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return `${boot} ${await readlink("/proc/self/ns/pid")}`;
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: another user's process lives.
    return isCode(error, "EPERM");
  }
};

const holderOf = (text: string): Holder | undefined => {
  try {
    const { token, pid, machine, host } = JSON.parse(text) as Partial<Record<keyof Holder, unknown>>;
    if (typeof token !== "string" || typeof pid !== "number" || !Number.isSafeInteger(pid)) return undefined;
    return { token, pid, machine: String(machine), host: String(host) };
  } catch {
    return undefined;
  }
};

const beatOf = async (file: string): Promise<string> =>
  stat(file).then(
    ({ mtimeMs, ino }) => `${ino} ${mtimeMs}`,
    () => "gone",
  );

/** Clocks of two machines cannot be compared. */
const isAbandoned = async (file: string, abandonedMs: number): Promise<boolean> => {
  const seen = await beatOf(file);
  const step = Math.max(1, abandonedMs / 30);
  for (let waited = 0; waited < abandonedMs; waited += step) {
    await sleep(step);
    if ((await beatOf(file)) !== seen) return false;
  }
  return true;
};

/** A lock that was taken meanwhile is put back. */
const removeLock = async (file: string, text: string, token: string): Promise<void> => {
  const aside = `${file}.${token}`;
  await rename(file, aside).catch((error: unknown) => {
    if (!isCode(error, "ENOENT")) throw error;
  });
  const moved = await readIfThere(aside);
  if (moved !== undefined && moved !== text) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
};

/** A process whose lock was taken over learns of it by `check`. @throws CopyError */
export const lockForWriting = async (file: string, options: LockOptions = {}): Promise<WriterLock> => {
  const { takeOver = false, beatMs = BEAT_MS, abandonedMs = ABANDONED_MS } = options;
  const token = randomUUID();
  const machine = await machineOf();
  const own = `${JSON.stringify({ token, pid: process.pid, machine, host: hostname() } satisfies Holder)}\n`;
  const take = (): Promise<boolean> =>
    writeFile(file, own, { flag: "wx" }).then(
      () => true,
      (error: unknown) => {
        if (isCode(error, "EEXIST")) return false;
        throw error;
      },
    );
  if (!(await take())) {
    const text = (await readIfThere(file)) ?? "";
    const holder = holderOf(text);
    // A process that died before writing its name leaves an empty file.
    if (text !== "" && holder === undefined)
      throw new CopyError(`${file} is no lock of this command: move it away`);
    const isDead = holder?.machine === machine && !isAlive(holder.pid);
    const isFree = takeOver || isDead || (await isAbandoned(file, abandonedMs));
    if (isFree) await removeLock(file, text, token);
    if (!isFree || !(await take())) {
      const by = holder === undefined ? "" : ` by process ${holder.pid} on ${holder.host}`;
      throw new CopyError(`another process writes this copy: ${file} is held${by}; --take-over stops it`);
    }
  }
  const isOwn = async (): Promise<boolean> => (await readIfThere(file)) === own;
  const beat = setInterval(() => {
    const now = new Date();
    void isOwn()
      .then((mine) => (mine ? utimes(file, now, now) : undefined))
      .catch(() => undefined);
  }, beatMs);
  beat.unref();
  return {
    check: async () => {
      if (!(await isOwn())) throw new CopyError(`another process has taken ${file} over: this one stops`);
    },
    release: async () => {
      clearInterval(beat);
      if (await isOwn()) await rm(file, { force: true });
    },
  };
};
