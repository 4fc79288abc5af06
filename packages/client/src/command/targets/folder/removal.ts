import { idOf, isDeletion } from "../../line.ts";
import type { Segment, SegmentWriter } from "../target.ts";
import { keepLines } from "./rewriting.ts";

export type RemovalDeps = {
  readonly read: (segment: Segment) => AsyncGenerator<string, void>;
  readonly beginInstead: (segment: Segment) => Promise<SegmentWriter>;
};

type Place = { readonly segment: number; readonly line: number };

const lastDeletions = async (
  segments: readonly Segment[],
  read: RemovalDeps["read"],
): Promise<Map<string, Place>> => {
  const places = new Map<string, Place>();
  for (const [segment, one] of segments.entries()) {
    if (one.deletions === 0) continue;
    let line = 0;
    for await (const text of read(one)) {
      if (isDeletion(text)) places.set(idOf(text), { segment, line });
      line += 1;
    }
  }
  return places;
};

/** Rewrites only files that lose a line; removes no file from disk. */
export const removeDeleted = async (
  segments: readonly Segment[],
  { read, beginInstead }: RemovalDeps,
): Promise<readonly Segment[]> => {
  const deletions = await lastDeletions(segments, read);
  const kept = async function* (at: number, segment: Segment, leaveOut?: () => void) {
    let line = 0;
    for await (const text of read(segment)) {
      const last = deletions.get(idOf(text));
      const isGone = last !== undefined && (at < last.segment || (at === last.segment && line <= last.line));
      if (isGone) leaveOut?.();
      else yield text;
      line += 1;
    }
  };
  const left: Segment[] = [];
  for (const [at, segment] of segments.entries())
    left.push(
      ...(await keepLines(
        segment,
        (leaveOut) => kept(at, segment, leaveOut),
        () => beginInstead(segment),
      )),
    );
  return left;
};
