import { readFile, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { CopyError } from "../exit-code.ts";

const LOCK_FILE = "pull.lock";

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's process is alive too.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
};

/** True when the process that wrote the lock is certainly gone. A process id of our own was another's before. */
const isStale = (text: string): boolean => {
  const [, pid, host] = /^(\d+) (.*)\n$/.exec(text) ?? [];
  return host === hostname() && (Number(pid) === process.pid || !isAlive(Number(pid)));
};

/**
 * Keeps other processes from writing into the folder; a lock of a process that died is taken over.
 * @returns what gives the folder free
 * @throws CopyError when another process has it
 */
export const lockFolder = async (root: string): Promise<() => Promise<void>> => {
  const file = join(root, LOCK_FILE);
  const take = async (): Promise<boolean> =>
    writeFile(file, `${process.pid} ${hostname()}\n`, { flag: "wx" }).then(
      () => true,
      (error: unknown) => {
        if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
        throw error;
      },
    );
  if (!(await take())) {
    const text = await readFile(file, "utf8").catch(() => "");
    if (isStale(text)) await rm(file, { force: true });
    if (!isStale(text) || !(await take())) {
      throw new CopyError(`another process writes into ${root} (${text.trim()}); if not, remove ${file}`);
    }
  }
  return () => rm(file, { force: true });
};
