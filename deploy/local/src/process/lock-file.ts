import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { identify, isAlive, parseIdentity, type ProcessIdentity, readIdentity } from "./process-identity.ts";

export type Lock = { readonly release: () => void };

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

/** Takes over a dead process's lock. @throws LockedError, also when this process holds it */
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
        // A link appears with its content: nobody reads a half-written lock.
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
    // Give back a lock that another process has just taken over.
    if (read(aside) !== expected) linkSync(aside, path);
  } catch {
    // The next attempt reads the new owner.
  } finally {
    rmSync(aside, { force: true });
  }
}

export function lockOwner(path: string): ProcessIdentity | undefined {
  const owner = readIdentity(path);
  return owner && isAlive(owner) ? owner : undefined;
}

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
