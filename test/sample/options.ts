import type { Dialog } from "./script.ts";

export type SampleOptions = {
  readonly seed: string | number;
  readonly conversations: number;
  /** Mean messages of a conversation; with `texts` the dialog sets the number. */
  readonly messagesPerConversation: number;
  readonly clients: readonly string[];
  /** First creation instant, in a form that `Date` parses. */
  readonly start: string;
  /** Days over which conversations are created; exports may follow up to five days later. */
  readonly days: number;
  /** Mean exports of a conversation, including the first; a whole number is exact. */
  readonly exportsPerConversation: number;
  readonly endUsers: number;
  /** Share of events that reach the bus a minute to a day and a half late, or after a newer export. */
  readonly lateShare: number;
  /** Share of events that reach the bus twice, byte for byte. */
  readonly duplicateShare: number;
  /** Share of additional events that must be rejected. */
  readonly poisonShare: number;
  /** Share of additional events with a null value, which are skipped. */
  readonly nullShare: number;
  /** How often odd but valid things occur: missing fields, rare number forms, unknown keys, strange ids. */
  readonly nonstandardShare: number;
  /** Number of conversations of a client that share a creation instant; one in twenty is in such a tie. */
  readonly tieSize: number;
  /** Real dialogs to use instead of the sample's own texts. */
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
