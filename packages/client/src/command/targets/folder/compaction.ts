import { idOf, isDeletion } from "../../line.ts";
import type { Segment, SegmentWriter } from "../target.ts";

/** About 60 MB of memory. */
export const MAX_IDS = 300_000;

export type CompactionDeps = {
  readonly read: (segment: Segment) => AsyncGenerator<string, void>;
  readonly begin: () => Promise<SegmentWriter>;
  /** Files below a quarter of it are merged. */
  readonly segmentBytes: number;
  readonly maxIds?: number;
};

const createRolling = ({ begin, segmentBytes }: Pick<CompactionDeps, "begin" | "segmentBytes">) => {
  const done: Segment[] = [];
  let writer: SegmentWriter | undefined;
  let lines: string[] = [];
  const flush = async (): Promise<void> => {
    if (lines.length === 0) return;
    writer ??= await begin();
    await writer.write(Buffer.from(`${lines.join("\n")}\n`), lines.length);
    lines = [];
    if (writer.bytes() < segmentBytes) return;
    done.push(await writer.finish());
    writer = undefined;
  };
  return {
    add: async (line: string): Promise<void> => {
      lines.push(line);
      if (lines.length >= 1_000) await flush();
    },
    end: async (): Promise<Segment[]> => {
      await flush();
      if (writer !== undefined) done.push(await writer.finish());
      return done;
    },
  };
};

/** Segments come oldest first; removes no file from disk. */
export const compactSegments = async (
  segments: readonly Segment[],
  deps: CompactionDeps,
): Promise<readonly Segment[]> => {
  const { maxIds = MAX_IDS, segmentBytes } = deps;
  const kept: Segment[] = [];
  const rolling = createRolling(deps);
  let newer = new Set<string>();

  const lastLines = async (segment: Segment): Promise<Map<string, number>> => {
    const last = new Map<string, number>();
    let at = 0;
    for await (const line of deps.read(segment)) {
      const id = idOf(line);
      if (!newer.has(id)) last.set(id, at);
      at += 1;
    }
    return last;
  };

  /** Removes superseded lines from older segments, so that the ids need no memory. */
  const forget = async (older: readonly Segment[]): Promise<Segment[]> => {
    const left: Segment[] = [];
    for (const segment of older) {
      let lost = 0;
      for await (const line of deps.read(segment)) if (newer.has(idOf(line))) lost += 1;
      if (lost === 0) {
        left.push(segment);
        continue;
      }
      const own = createRolling(deps);
      for await (const line of deps.read(segment)) if (!newer.has(idOf(line))) await own.add(line);
      left.push(...(await own.end()));
    }
    newer = new Set();
    return left;
  };

  let waiting = [...segments];
  for (let segment = waiting.pop(); segment !== undefined; segment = waiting.pop()) {
    const last = await lastLines(segment);
    const isWhole = last.size === segment.lines && segment.deletions === 0;
    if (isWhole && segment.bytes >= segmentBytes / 4) kept.push(segment);
    else {
      let at = 0;
      for await (const line of deps.read(segment)) {
        if (last.get(idOf(line)) === at && !isDeletion(line)) await rolling.add(line);
        at += 1;
      }
    }
    for (const id of last.keys()) newer.add(id);
    if (newer.size > maxIds) waiting = await forget(waiting);
  }
  return [...kept.reverse(), ...(await rolling.end())];
};
