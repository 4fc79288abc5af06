import type { TopicPartition } from "../message.ts";

/** `draining`: the old generation still commits; `joining`: nobody does. */
type Phase = "idle" | "joined" | "draining" | "joining" | "stopped";

export type Membership = {
  phase: Phase;
  epoch: number;
  assignment: readonly TopicPartition[];
  lastTick: number;
};

export const createMembership = (): Membership => ({
  phase: "idle",
  epoch: 0,
  assignment: [],
  lastTick: Date.now(),
});

export const mayCommit = ({ epoch, phase }: Membership, of: number): boolean =>
  of === epoch && (phase === "joined" || phase === "draining");
