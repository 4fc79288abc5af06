import { runJob } from "@conversation-export/queue";
import { createReplayStore } from "@conversation-export/warehouse";
import { withBus } from "../process/bus-clients.ts";
import type { AssembledJob, Shared } from "../process/shared.ts";
import { createReplay } from "./replay.ts";

export const createReplayJob = ({ session, bus, metrics }: Shared): AssembledJob => {
  const replayed = metrics.counter(
    "conversation_export_replayed_dead_letters_total",
    "Dead letters sent to their topic again",
    ["topic", "reason"],
  );
  const replay = createReplay({
    ...bus,
    store: createReplayStore({ session, now: Date.now }),
    onReplayed: (topic, reason, deadLetters) => replayed.inc({ topic, reason }, deadLetters),
  });
  return { job: runJob(withBus(bus, replay), { globalConcurrency: 1 }) };
};
