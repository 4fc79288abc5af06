import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { link, readlink, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { CopyError, isCode } from "../exit-code.ts";
import { readIfThere } from "./durable-file.ts";

/** ms between the signs of life of the process that writes. */
const BEAT_MS = 5_000;
/** ms without a sign of life after which a lock is taken over, by the clock of the one that waits. */
const ABANDONED_MS = 30_000;

export type LockOptions = {
  /** Takes the lock whoever has it. */
  readonly takeOver?: boolean;
  readonly beatMs?: number;
  readonly abandonedMs?: number;
};

export type WriterLock = {
  /** @throws CopyError when another process has taken the lock over */
  check(): Promise<void>;
  release(): Promise<void>;
};

type Holder = {
  readonly token: string;
  readonly pid: number;
  readonly machine: string;
  readonly host: string;
};

/** Where the ids of processes mean the same: containers with one host name have ids of their own. */
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
    // Another user's process is alive too.
    return isCode(error, "EPERM");
  }
};

/** Undefined: the file is something else. */
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

/** Waits for a sign of life. The clocks of two machines are never compared. */
const isAbandoned = async (file: string, abandonedMs: number): Promise<boolean> => {
  const seen = await beatOf(file);
  const step = Math.max(1, abandonedMs / 30);
  for (let waited = 0; waited < abandonedMs; waited += step) {
    await sleep(step);
    if ((await beatOf(file)) !== seen) return false;
  }
  return true;
};

/** Removes the lock that was looked at; one that came meanwhile is put back. */
const removeLock = async (file: string, text: string, token: string): Promise<void> => {
  const aside = `${file}.${token}`;
  await rename(file, aside).catch((error: unknown) => {
    if (!isCode(error, "ENOENT")) throw error;
  });
  const moved = await readIfThere(aside);
  if (moved !== undefined && moved !== text) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
};

/**
 * Keeps other processes from writing a copy. The file is made exclusively and touched every few seconds; that
 * of a process that is dead, or has given no sign of life for long, is taken over. Who was taken for dead
 * finds out by `check` before it writes a state.
 *
 * @throws CopyError when another process has it
 */
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
    // One that died before it wrote its name leaves an empty file.
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
    // A lock that was taken over is found by `check`.
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
