import type { Dialog } from "./script.ts";

export type SampleOptions = {
  readonly seed: string | number;
  readonly conversations: number;
  /** Mean; `texts` overrides it. */
  readonly messagesPerConversation: number;
  readonly clients: readonly string[];
  readonly start: string;
  /** Exports may follow up to five days later. */
  readonly days: number;
  /** Mean; a whole number is exact. */
  readonly exportsPerConversation: number;
  readonly endUsers: number;
  readonly lateShare: number;
  readonly duplicateShare: number;
  /** Of additional events. */
  readonly poisonShare: number;
  /** Of additional events. */
  readonly nullShare: number;
  /** Odd but valid. */
  readonly nonstandardShare: number;
  /** Conversations that share a creation instant. */
  readonly tieSize: number;
  readonly texts?: readonly Dialog[];
};

export const SAMPLE_DEFAULTS: SampleOptions = {
  seed: 1,
  conversations: 1_000,
  messagesPerConversation: 5,
  clients: ["acme", "globex", "initech"],
  start: "2026-10-04T00:00:00Z",
  days: 7,
  exportsPerConversation: 1.6,
  endUsers: 200,
  lateShare: 0.03,
  duplicateShare: 0.02,
  poisonShare: 0.005,
  nullShare: 0.001,
  nonstandardShare: 0.08,
  tieSize: 6,
};
