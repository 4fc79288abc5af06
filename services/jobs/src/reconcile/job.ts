import { runJob } from "@conversation-export/queue";
import { createClientStore, createReconcileStore } from "@conversation-export/warehouse";
import { withBus } from "../process/bus-clients.ts";
import type { AssembledJob, Shared } from "../process/shared.ts";
import { createReconcile } from "./reconcile.ts";
import type { Fate } from "./reconcile-hour.ts";

/** Then a later attempt waits. */
const PATIENCE_MS = 60_000;

const FATES: Readonly<Record<Fate, string>> = {
  readable: "readable",
  missing: "missing",
  deadLetters: "dead_letters",
  suppressed: "suppressed",
  erasedButReadable: "erased_but_readable",
  expired: "expired",
};

export const createReconcileJob = (shared: Shared): AssembledJob => {
  const { config, session, bus, gate, runHolders, metrics } = shared;
  const compared = metrics.counter(
    "conversation_export_reconciled_messages_total",
    "Messages of the bus that were compared with what is readable, by what became of them",
    ["topic", "fate"],
  );
  const store = createReconcileStore({ session, now: Date.now, holder: runHolders.own });
  const reconcile = createReconcile({
    topics: bus.types,
    reader: bus.reader,
    deadLetters: bus.deadLetters,
    progress: bus.progress,
    store,
    clients: createClientStore({ session, now: Date.now }),
    suppresses: gate.wouldSuppress,
    maxTimeAheadMs: config.maxTimeAheadMs,
    patienceMs: PATIENCE_MS,
    now: Date.now,
    onCompared: ({ topic, gone, ignored, refused, clients }) => {
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
  });
  const findings = ["records_missing", "erased_but_readable"];
  return {
    job: runJob(withBus(bus, reconcile), { globalConcurrency: 1, findings }),
    sweep: () => store.sweep(runHolders.alive),
  };
};
