import { idOf, isDeletion } from "../../line.ts";
import type { Segment, SegmentWriter } from "../target.ts";

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

async function* judged(
  lines: AsyncGenerator<string, void>,
  segment: number,
  deletions: ReadonlyMap<string, Place>,
): AsyncGenerator<{ readonly text: string; readonly isGone: boolean }, void> {
  let line = 0;
  for await (const text of lines) {
    const place = deletions.get(idOf(text));
    const isGone =
      place !== undefined && (segment < place.segment || (segment === place.segment && line <= place.line));
    yield { text, isGone };
    line += 1;
  }
}

const BATCH = 1_000;

const rewrite = async (
  lines: AsyncIterable<string>,
  begin: () => Promise<SegmentWriter>,
): Promise<Segment | null> => {
  let writer: SegmentWriter | undefined;
  let waiting: string[] = [];
  const flush = async (): Promise<void> => {
    if (waiting.length === 0) return;
    writer ??= await begin();
    await writer.write(Buffer.from(`${waiting.join("\n")}\n`), waiting.length);
    waiting = [];
  };
  try {
    for await (const line of lines) {
      waiting.push(line);
      if (waiting.length >= BATCH) await flush();
    }
    await flush();
    return (await writer?.finish()) ?? null;
  } catch (error) {
    await writer?.abort();
    throw error;
  }
};

/** Rewrites only files that lose a line; removes no file from disk. */
export const removeDeleted = async (
  segments: readonly Segment[],
  { read, beginInstead }: RemovalDeps,
): Promise<readonly Segment[]> => {
  const deletions = await lastDeletions(segments, read);
  const left: Segment[] = [];
  for (const [at, segment] of segments.entries()) {
    let lost = 0;
    for await (const { isGone } of judged(read(segment), at, deletions)) if (isGone) lost += 1;
    if (lost === 0) {
      left.push(segment);
      continue;
    }
    const kept = async function* () {
      for await (const { text, isGone } of judged(read(segment), at, deletions)) if (!isGone) yield text;
    };
    const rewritten = await rewrite(kept(), () => beginInstead(segment));
    if (rewritten !== null) left.push(rewritten);
  }
  return left;
};
