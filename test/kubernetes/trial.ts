import type { Cluster } from "./cluster.ts";
import type { AlertMonitor } from "./alert-monitor.ts";
import type { Client } from "./client.ts";
import type { Events } from "./events.ts";
import type { NodeAgent } from "./node-agent.ts";
import type { Release } from "./release.ts";
import type { Servers } from "./servers.ts";
import type { Steps } from "./step.ts";

export type Trial = {
  readonly cluster: Cluster;
  readonly release: Release;
  readonly agent: NodeAgent;
  readonly servers: Servers;
  readonly steps: Steps;
  readonly events: Events;
  readonly watch: AlertMonitor | null;
  readonly client: Client;
  readonly clientNamespace: string;
};

/** The message of a rejection. @throws Error when the work succeeds */
export const refusalOf = async (what: string, work: Promise<unknown>): Promise<string> => {
  const message = await work.then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  if (message === null) throw new Error(`${what} was not refused`);
  return message;
};

export const expectSays = (text: string, ...parts: readonly string[]): void => {
  for (const part of parts) if (!text.includes(part)) throw new Error(`"${part}" is not said in:\n${text}`);
};
