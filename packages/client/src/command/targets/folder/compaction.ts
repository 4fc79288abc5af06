import { idOf, isDeletion } from "../../line.ts";
import type { Segment, SegmentWriter } from "../target.ts";
import { keepLines, writeLines } from "./rewriting.ts";

/** About 60 MB of memory. */
export const MAX_IDS = 300_000;

export type CompactionDeps = {
  readonly read: (segment: Segment) => AsyncGenerator<string, void>;
  readonly begin: () => Promise<SegmentWriter>;
  /** Files below a quarter of it are merged. */
  readonly segmentBytes: number;
  readonly maxIds?: number;
};

/** Segments come oldest first; removes no file from disk. */
export const compactSegments = async (
  segments: readonly Segment[],
  deps: CompactionDeps,
): Promise<readonly Segment[]> => {
  const { maxIds = MAX_IDS, segmentBytes, read, begin } = deps;
  const kept: Segment[] = [];
  let newer = new Set<string>();

  const lastLines = async (segment: Segment): Promise<Map<string, number>> => {
    const last = new Map<string, number>();
    let at = 0;
    for await (const line of read(segment)) {
      const id = idOf(line);
      if (!newer.has(id)) last.set(id, at);
      at += 1;
    }
    return last;
  };

  const notNewer = async function* (segment: Segment, leaveOut?: () => void) {
    for await (const line of read(segment)) {
      if (newer.has(idOf(line))) leaveOut?.();
      else yield line;
    }
  };

  /** Removes superseded lines from older segments, so that the ids need no memory. */
  const forget = async (older: readonly Segment[]): Promise<Segment[]> => {
    const left: Segment[] = [];
    for (const segment of older)
      left.push(
        ...(await keepLines(segment, (leaveOut) => notNewer(segment, leaveOut), begin, segmentBytes)),
      );
    newer = new Set();
    return left;
  };

  const merged = async function* () {
    let waiting = [...segments];
    for (let segment = waiting.pop(); segment !== undefined; segment = waiting.pop()) {
      const last = await lastLines(segment);
      const isWhole = last.size === segment.lines && segment.deletions === 0;
      if (isWhole && segment.bytes >= segmentBytes / 4) kept.push(segment);
      else {
        let at = 0;
        for await (const line of read(segment)) {
          if (last.get(idOf(line)) === at && !isDeletion(line)) yield line;
          at += 1;
        }
      }
      for (const id of last.keys()) newer.add(id);
      if (newer.size > maxIds) waiting = await forget(waiting);
    }
  };
  const written = await writeLines(merged(), begin, segmentBytes);
  return [...kept.reverse(), ...written];
};
