import { END_OF_TIME, type Micros, parseTimestamp } from "@conversation-export/domain";
import type { BackfillData, BackfillWindow } from "@conversation-export/queue";
import { hashRanges, type LandingSelection } from "@conversation-export/warehouse";
import { z } from "zod";
import type { RunFacts } from "./correct-records.ts";

const instant = z.int().min(0);
const hash = z.string().regex(/^\d+$/);

/** Stored in the queue; instants are µs. */
export const landingPartSchema = z.object({
  kind: z.literal("landing"),
  run: z.string(),
  coverage: z.object({ since: instant, asOf: instant }).nullable(),
  stableUpTo: instant,
  /** Epoch milliseconds, before the stored rows were copied. */
  readAt: instant,
  from: hash,
  to: hash,
});
export type LandingPart = z.infer<typeof landingPartSchema>;

type Range = LandingSelection["range"];
type Exported = LandingSelection["exported"];

const MAX_PARTS = 8_000;

export const microsOf = (text: string): Micros => {
  const micros = parseTimestamp(text);
  if (micros === undefined) throw new TypeError("a bound of a window is no instant");
  return micros;
};

/** null: not restricted. */
export const exportedIn = (window: BackfillWindow | null): Exported =>
  window?.by === "event" ? { from: microsOf(window.from), to: microsOf(window.to) } : null;

/** Events may come late, or up to `maxTimeAheadMs` too early. */
export function rangesOf(window: BackfillWindow | null, maxTimeAheadMs: number): Range[] {
  if (window === null) return [{ by: "upload", from: 0, to: END_OF_TIME }];
  if (window.by === "offsets") {
    return window.ranges.map((range) => ({ by: "offsets", topic: window.topic, ...range }));
  }
  const [from, to] = [microsOf(window.from), microsOf(window.to)];
  if (window.by === "upload") return [{ by: "upload", from, to }];
  return [{ by: "bus", from: Math.max(0, from - maxTimeAheadMs * 1_000), to: END_OF_TIME }];
}

export const selectionsOf = (
  { clientId, window }: BackfillData,
  maxTimeAheadMs: number,
): LandingSelection[] =>
  rangesOf(window, maxTimeAheadMs).map((range) => ({ clientId, range, exported: exportedIn(window) }));

/** Parts may be larger than `size`. */
export const partsOf = (
  facts: RunFacts & { readonly readAt: number },
  events: number,
  size: number,
): LandingPart[] =>
  hashRanges(Math.min(MAX_PARTS, Math.ceil(events / size))).map((range) => ({
    kind: "landing",
    ...facts,
    ...range,
  }));
