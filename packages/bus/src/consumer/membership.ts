import type { TopicPartition } from "../message.ts";

/** `draining`: the old generation still commits. `joining`: nobody commits. */
export type Phase = "idle" | "joined" | "draining" | "joining" | "stopped";

/** The state of this member in its group. The parts of the consumer share it. */
export type Membership = {
  phase: Phase;
  /** The number of the last assignment, from 1. */
  epoch: number;
  assignment: readonly TopicPartition[];
  /** Date.now() of the last sign of life. */
  lastTick: number;
};

export const createMembership = (): Membership => ({
  phase: "idle",
  epoch: 0,
  assignment: [],
  lastTick: Date.now(),
});

/** True while offsets of `epoch` may be committed. */
export const mayCommit = ({ epoch, phase }: Membership, of: number): boolean =>
  of === epoch && (phase === "joined" || phase === "draining");
