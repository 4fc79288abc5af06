import { END_OF_TIME, type Micros } from "@conversation-export/domain";
import type { BackfillData, BackfillWindow } from "@conversation-export/queue";
import type { LandingCount, LandingSelection } from "@conversation-export/warehouse";
import { z } from "zod";

const count = z.int().min(0);

/** A part of the landing table as stored in the queue; ranges exclude `to`, instants are µs. */
export const landingPartSchema = z.object({
  kind: z.literal("landing"),
  range: z.discriminatedUnion("by", [
    z.object({ by: z.enum(["upload", "bus"]), from: count, to: count }),
    z.object({ by: z.literal("offsets"), topic: z.string(), partition: count, from: count, to: count }),
  ]),
  share: z.object({ index: count, of: z.int().min(1) }),
  events: count,
});
export type LandingPart = z.infer<typeof landingPartSchema>;

type Range = LandingSelection["range"];
type Exported = LandingSelection["exported"];

const microsOf = (text: string): Micros => Date.parse(text) * 1_000;

/** Range of export times of the events in a window; null when the window does not restrict them. */
export const exportedIn = (window: BackfillWindow | null): Exported =>
  window?.by === "event" ? { from: microsOf(window.from), to: microsOf(window.to) } : null;

/**
 * Ranges of landing that hold the events of a window. Events may come late, or up to `maxTimeAheadMs` too
 * early.
 */
export function rangesOf(window: BackfillWindow | null, maxTimeAheadMs: number): Range[] {
  if (window === null) return [{ by: "upload", from: 0, to: END_OF_TIME }];
  if (window.by === "offsets") {
    return window.ranges.map((range) => ({ by: "offsets", topic: window.topic, ...range }));
  }
  const [from, to] = [microsOf(window.from), microsOf(window.to)];
  if (window.by === "upload") return [{ by: "upload", from, to }];
  return [{ by: "bus", from: Math.max(0, from - maxTimeAheadMs * 1_000), to: END_OF_TIME }];
}

/** Selects a whole range, to count its events. */
export const wholeSelection = (data: BackfillData, range: Range): LandingSelection => ({
  clientId: data.clientId,
  range,
  exported: exportedIn(data.window),
  share: { index: 0, of: 1 },
});

export const partSelection = (data: BackfillData, part: LandingPart): LandingSelection => ({
  clientId: data.clientId,
  range: part.range,
  exported: exportedIn(data.window),
  share: part.share,
});

/** Cuts a range into parts of about `size` events: joins short stretches, splits a full one by record. */
export function cutIntoParts(range: Range, counts: readonly LandingCount[], size: number): LandingPart[] {
  const parts: LandingPart[] = [];
  const end = (from: number, to: number, events: number): void => {
    const inRange = { ...range, from: Math.max(from, range.from), to: Math.min(to, range.to) };
    const of = Math.max(1, Math.ceil(events / (2 * size)));
    for (let index = 0; index < of; index += 1) {
      parts.push({ kind: "landing", range: inRange, share: { index, of }, events: Math.ceil(events / of) });
    }
  };
  let open: LandingCount | undefined;
  for (const stretch of counts) {
    if (open !== undefined && open.events + stretch.events > size) {
      end(open.from, open.to, open.events);
      open = undefined;
    }
    open = {
      from: open?.from ?? stretch.from,
      to: stretch.to,
      events: (open?.events ?? 0) + stretch.events,
    };
  }
  if (open !== undefined) end(open.from, open.to, open.events);
  return parts;
}
