import type { AlertMonitor } from "./alert-monitor.ts";
import type { Client, Seen } from "./client.ts";
import type { Release } from "./release.ts";

/** In addition to 200 and 429. */
export type Allowed = {
  /** Connections break: a process is killed or hangs. */
  readonly broken?: boolean;
  /** 503 with `Retry-After`: a server is down on purpose. */
  readonly away?: boolean;
};

export type Row = {
  readonly name: string;
  readonly seconds: number;
  readonly seen: Seen | null;
  readonly alerts: readonly string[] | null;
  readonly note: string;
};

export type Steps = {
  readonly rows: readonly Row[];
  step(name: string, allowed: Allowed, work: () => Promise<string>): Promise<void>;
};

export const complaintsOf = (seen: Seen, { broken = false, away = false }: Allowed): string[] => [
  ...(seen.wrong > 0 ? [`${seen.wrong} wrong answers`] : []),
  ...(seen.broken > 0 && !broken ? [`${seen.broken} broken connections`] : []),
  ...((seen.statuses["503"] ?? 0) > 0 && !away ? [`${seen.statuses["503"]} times 503`] : []),
  ...((seen.statuses["200"] ?? 0) === 0 ? ["no answer with 200"] : []),
];

const seconds = (from: number): number => Math.round((Date.now() - from) / 100) / 10;

const isJson = (line: string): boolean => {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
};

export const createSteps = (deps: {
  readonly release: Release;
  readonly client: () => Client | null;
  readonly watch: () => AlertMonitor | null;
  readonly print: (line: string) => void;
}): Steps => {
  const { release, print } = deps;
  const rows: Row[] = [];
  return {
    rows,
    step: async (name, allowed, work) => {
      const from = Date.now();
      const note = await work();
      const took = seconds(from);
      const seen = (await deps.client()?.since(from)) ?? null;
      const fired =
        deps
          .watch()
          ?.firings()
          .filter((one) => one.from > from) ?? null;
      const alerts = fired && [...new Set(fired.map(({ alert }) => alert))];
      const row = { name, seconds: took, seen, alerts, note };
      rows.push(row);
      print(renderRow(row));
      if (seen === null) return;
      const complaints = complaintsOf(seen, allowed);
      const text = (await release.logs(from)).filter((line) => !isJson(line));
      if (text.length > 0) complaints.push(`logs that are no JSON: ${text.slice(0, 3).join(" | ")}`);
      if (complaints.length > 0)
        throw new Error(`${name}: ${complaints.join(", ")}\n${seen.said.slice(0, 10).join("\n")}`);
    },
  };
};

export const renderRow = ({ name, seconds: took, seen, alerts, note }: Row): string => {
  const of = (status: string): string => String(seen?.statuses[status] ?? 0);
  const age = seen?.oldest == null ? "–" : `${(seen.oldest / 1000).toFixed(1)} s`;
  const counts =
    seen === null ? ["–", "–", "–", "–", "–"] : [of("200"), of("429"), of("503"), String(seen.broken), age];
  const fired = alerts === null ? "–" : alerts.join(", ") || "none";
  return `| ${[name, `${took.toFixed(1)} s`, ...counts, fired, note].join(" | ")} |`;
};

export const TABLE_HEAD =
  "| Step | Time | 200 | 429 | 503 | broken | oldest watermark | alerts | |\n|---|---|---|---|---|---|---|---|---|";
