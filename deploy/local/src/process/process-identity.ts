import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Unique even if the pid is reused. */
export type ProcessIdentity = { readonly pid: number; readonly startedAt: string };

/** The command's name, in parentheses, may itself hold spaces and parentheses. */
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

/** Undefined: ended or a zombie. */
export function identify(pid: number): ProcessIdentity | undefined {
  const found = readProcess(pid);
  return found && !/^[ZX]/.test(found.state) ? { pid, startedAt: found.startedAt } : undefined;
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startedAt === identity.startedAt;
}

/** Threads stop when scheduled, so each is checked. */
export function isStopped(pid: number): boolean {
  if (process.platform !== "linux") return readProcess(pid)?.state.startsWith("T") ?? false;
  try {
    return readdirSync(`/proc/${pid}/task`).every(
      (thread) => parseProcStat(readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8"))?.state === "T",
    );
  } catch {
    return false;
  }
}

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

export function readIdentity(path: string): ProcessIdentity | undefined {
  try {
    return parseIdentity(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/** False at the deadline. */
export async function waitForEnd(identity: ProcessIdentity, deadlineMs: number): Promise<boolean> {
  const end = Date.now() + deadlineMs;
  while (isAlive(identity)) {
    if (Date.now() > end) return false;
    await sleep(50);
  }
  return true;
}
