import type { Segment, SegmentWriter } from "../target.ts";

const BATCH = 1_000;

/** Without lines no file; another one begins after `segmentBytes`. */
export const writeLines = async (
  lines: AsyncIterable<string>,
  begin: () => Promise<SegmentWriter>,
  segmentBytes = Infinity,
): Promise<Segment[]> => {
  const done: Segment[] = [];
  let writer: SegmentWriter | undefined;
  let waiting: string[] = [];
  const flush = async (): Promise<void> => {
    if (waiting.length === 0) return;
    writer ??= await begin();
    await writer.write(Buffer.from(`${waiting.join("\n")}\n`), waiting.length);
    waiting = [];
    if (writer.bytes() >= segmentBytes) await finish();
  };
  const finish = async (): Promise<void> => {
    if (writer !== undefined) done.push(await writer.finish());
    writer = undefined;
  };
  try {
    for await (const line of lines) {
      waiting.push(line);
      if (waiting.length >= BATCH) await flush();
    }
    await flush();
    await finish();
    return done;
  } catch (error) {
    await writer?.abort();
    throw error;
  }
};

/** The segment itself if it keeps all its lines. */
export const keepLines = async (
  segment: Segment,
  kept: (leaveOut?: () => void) => AsyncIterable<string>,
  begin: () => Promise<SegmentWriter>,
  segmentBytes?: number,
): Promise<readonly Segment[]> => {
  let lost = 0;
  const counted = kept(() => {
    lost += 1;
  });
  for await (const _ of counted);
  return lost === 0 ? [segment] : writeLines(kept(), begin, segmentBytes);
};
