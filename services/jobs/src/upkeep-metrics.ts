import type { Metrics } from "@conversation-export/runtime";
import type { Fate, HourReport } from "./reconcile-hour.ts";

/** Fates as the metric calls them. */
const FATES: Readonly<Record<Fate, string>> = {
  readable: "readable",
  missing: "missing",
  deadLetters: "dead_letters",
  suppressed: "suppressed",
  erasedButReadable: "erased_but_readable",
  expired: "expired",
};

/** What replay, retention and reconcile have done since the process began. */
export const createUpkeepMetrics = (metrics: Metrics) => {
  const replayed = metrics.counter("replayed_letters_total", "Dead letters sent to their topic again", [
    "topic",
    "reason",
  ]);
  const expired = metrics.counter("retention_rows_total", "Stored rows erased for their age", ["table"]);
  const compared = metrics.counter(
    "reconciled_messages_total",
    "Messages of the bus that were compared with what is readable, by what became of them",
    ["topic", "fate"],
  );
  return {
    replayed: (topic: string, reason: string, letters: number): void =>
      replayed.inc({ topic, reason }, letters),
    expired: (table: string, rows: number): void => expired.inc({ table }, rows),
    compared: ({ topic, gone, ignored, refused, clients }: HourReport): void => {
      compared.inc({ topic, fate: "gone" }, gone);
      compared.inc({ topic, fate: "ignored" }, ignored);
      compared.inc({ topic, fate: "refused" }, refused);
      for (const [fate, label] of Object.entries(FATES) as [Fate, string][]) {
        compared.inc(
          { topic, fate: label },
          clients.reduce((sum, one) => sum + one[fate], 0),
        );
      }
    },
  };
};
