import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { acquireLock, LockedError } from "./lock-file.ts";

// Below ephemeral ports, so that a stopped server finds its port free again.
const firstPort = 20_000;
const lastPort = 32_000;
const host = "127.0.0.1";
// One lock file a port.
const reservations = join(tmpdir(), `conversation-export-ports-${userInfo().uid}`);

export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ port, host, exclusive: true }, () => probe.close(() => resolve(true)));
  });
}

/** Its server may start listening only later. */
function reserve(port: number): boolean {
  try {
    acquireLock(join(reservations, String(port)));
    return true;
  } catch (error) {
    if (error instanceof LockedError) return false;
    throw error;
  }
}

/** Until this process ends. */
export const takePort = async (port: number): Promise<boolean> => (await isPortFree(port)) && reserve(port);

/** `fixed` must be free, `preferred` need not. */
export type PortWishes<Name extends string> = {
  readonly names: readonly Name[];
  readonly fixed: Readonly<Partial<Record<Name, number | undefined>>>;
  readonly preferred?: Readonly<Partial<Record<Name, number>>>;
};

/** Reserves ports that are neither fixed nor preferred. @throws Error for a fixed port in use */
export async function choosePorts<Name extends string>(
  wishes: PortWishes<Name>,
): Promise<Record<Name, number>> {
  const chosen = new Map<Name, number>();
  const taken = new Set<number>();
  const take = (name: Name, port: number): void => {
    chosen.set(name, port);
    taken.add(port);
  };
  for (const name of wishes.names) {
    const port = wishes.fixed[name];
    if (port === undefined) continue;
    if (taken.has(port)) throw new Error(`port ${port} is asked for twice, the second time by ${name}`);
    if (!(await isPortFree(port))) {
      throw new Error(`port ${port} (${name}) of ${host} is in use: free it or choose another`);
    }
    take(name, port);
  }
  for (const name of wishes.names) {
    if (chosen.has(name)) continue;
    const preferred = wishes.preferred?.[name];
    if (preferred !== undefined && !taken.has(preferred) && (await isPortFree(preferred))) {
      take(name, preferred);
      continue;
    }
    take(name, await randomFreePort(taken));
  }
  return Object.fromEntries(chosen) as Record<Name, number>;
}

async function randomFreePort(taken: ReadonlySet<number>): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const port = randomInt(firstPort, lastPort);
    if (!taken.has(port) && (await takePort(port))) return port;
  }
  throw new Error(`no free port of ${host} between ${firstPort} and ${lastPort}`);
}
