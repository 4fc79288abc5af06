import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { identify, isAlive, parseIdentity, type ProcessIdentity } from "./process-identity.ts";

/** A lock held by this process; `release` is safe to call more than once. */
export type Lock = { readonly release: () => void };

/** Thrown when a living process holds the lock. */
export class LockedError extends Error {
  readonly owner: ProcessIdentity;
  constructor(path: string, owner: ProcessIdentity) {
    super(`${path} is held by the running process ${owner.pid}`);
    this.name = "LockedError";
    this.owner = owner;
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

let sequence = 0;

/**
 * Takes a lock file that names its owner. The lock of a process that has ended is taken over.
 *
 * @throws LockedError when a living process holds it, this one included.
 */
export function acquireLock(path: string): Lock {
  mkdirSync(dirname(path), { recursive: true });
  const self = identify(process.pid);
  if (!self) throw new Error(`cannot read the start time of process ${process.pid}`);
  sequence += 1;
  const own = `${path}.${process.pid}.${sequence}`;
  const text = JSON.stringify(self);
  writeFileSync(own, text);
  try {
    for (;;) {
      try {
        // A link appears with its content, so no reader ever sees a half-written lock.
        linkSync(own, path);
        break;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      const held = read(path);
      if (held === undefined) continue;
      const owner = parseIdentity(held);
      if (owner && isAlive(owner)) throw new LockedError(path, owner);
      removeStale(path, held, `${own}.stale`);
    }
  } finally {
    rmSync(own, { force: true });
  }
  let released = false;
  return {
    release() {
      if (released) return;
      released = true;
      if (read(path) === text) rmSync(path, { force: true });
    },
  };
}

function removeStale(path: string, expected: string, aside: string): void {
  try {
    renameSync(path, aside);
    // Another process may have taken over the stale lock a moment earlier: give it back.
    if (read(aside) !== expected) linkSync(aside, path);
  } catch {
    // The next attempt reads the new owner.
  } finally {
    rmSync(aside, { force: true });
  }
}

/** The living process that holds a lock; undefined when none does. */
export function lockOwner(path: string): ProcessIdentity | undefined {
  const owner = parseIdentity(read(path) ?? "");
  return owner && isAlive(owner) ? owner : undefined;
}

/** Waits for a lock, at most `deadlineMs`. */
export async function waitForLock(path: string, deadlineMs: number): Promise<Lock> {
  const end = Date.now() + deadlineMs;
  for (;;) {
    try {
      return acquireLock(path);
    } catch (error) {
      if (!(error instanceof LockedError) || Date.now() > end) throw error;
      await sleep(100);
    }
  }
}
