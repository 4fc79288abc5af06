import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** A pid with its start time, as the system writes it: it stays unique when the pid is reused. */
export type ProcessIdentity = { readonly pid: number; readonly startedAt: string };

/**
 * Reads state and start time from a Linux `/proc/<pid>/stat` line. The command name is in parentheses and
 * may hold spaces and parentheses itself.
 */
export function parseProcStat(line: string): { state: string; startedAt: string } | undefined {
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const state = fields[0];
  const startedAt = fields[19];
  return state && startedAt ? { state, startedAt } : undefined;
}

function readProcess(pid: number): { state: string; startedAt: string } | undefined {
  try {
    if (process.platform === "linux") return parseProcStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
    const line = execFileSync("ps", ["-o", "stat=", "-o", "lstart=", "-p", String(pid)], {
      encoding: "utf8",
    });
    const [state = "", ...startedAt] = line.trim().split(/\s+/);
    return { state, startedAt: startedAt.join(" ") };
  } catch {
    return undefined;
  }
}

/** Identity of a living process; undefined when it has ended or is a zombie. */
export function identify(pid: number): ProcessIdentity | undefined {
  const found = readProcess(pid);
  return found && !/^[ZX]/.test(found.state) ? { pid, startedAt: found.startedAt } : undefined;
}

/** True while exactly this process lives; false when another process has its pid. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startedAt === identity.startedAt;
}

/**
 * True while a process is stopped, as by SIGSTOP: it lives and does nothing. Each of its threads stops when it is
 * scheduled, so on Linux all of them are looked at.
 */
export function isStopped(pid: number): boolean {
  if (process.platform !== "linux") return readProcess(pid)?.state.startsWith("T") ?? false;
  try {
    return readdirSync(`/proc/${pid}/task`).every(
      (thread) => parseProcStat(readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8"))?.state === "T",
    );
  } catch {
    // It or a thread of it has ended.
    return false;
  }
}

/** Parses an identity written by `JSON.stringify`; undefined for anything else. */
export function parseIdentity(text: string): ProcessIdentity | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return undefined;
    const { pid, startedAt } = value as { pid?: unknown; startedAt?: unknown };
    return typeof pid === "number" && typeof startedAt === "string" ? { pid, startedAt } : undefined;
  } catch {
    return undefined;
  }
}

/** Waits until a process has ended; false when it still lives after `deadlineMs`. */
export async function waitForEnd(identity: ProcessIdentity, deadlineMs: number): Promise<boolean> {
  const end = Date.now() + deadlineMs;
  while (isAlive(identity)) {
    if (Date.now() > end) return false;
    await sleep(50);
  }
  return true;
}
