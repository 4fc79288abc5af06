import type { BusMessage } from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import type { BackfillWindow } from "@conversation-export/queue";
import { z } from "zod";

const count = z.int().min(0);

/** Places of one partition, and of them what has this time on the bus (ms, `to` excluded). */
const kafkaPartSchema = z.object({
  kind: z.literal("kafka"),
  topic: z.string(),
  partition: count,
  from: count,
  to: count,
  busTime: z.object({ from: z.number(), to: z.number() }).nullable(),
});
export type KafkaPart = z.infer<typeof kafkaPartSchema>;

const fileSchema = z.object({
  /** The path, or `s3://bucket/key`. */
  location: z.string(),
  size: count,
  /** Changes when the content does. */
  tag: z.string(),
});
export type SourceFile = z.infer<typeof fileSchema>;

const filesPartSchema = z.object({ kind: z.literal("files"), files: z.array(fileSchema) });
export type FilesPart = z.infer<typeof filesPartSchema>;

/** A part of a source as it lies in the queue. */
export const sourcePartSchema = z.discriminatedUnion("kind", [kafkaPartSchema, filesPartSchema]);
export type SourcePart = z.infer<typeof sourcePartSchema>;

/**
 * An event as ingest would have got it. Of a line of a file the topic is `file:` with the file's location and
 * tag, the offset is the number of the line, the bus time that of reading, and headers carry the place on the
 * bus, so that `busPositionOf` holds for all.
 */
export type SourceEvent = { readonly type: EventType; readonly message: BusMessage };

/** What no event can be made of: where it stands and why, without what it says. */
export type SourceProblem = { readonly place: string; readonly reason: string; readonly detail: string };

/** Some events of a part in order; a place of it holds an event or a problem. */
export type SourceBatch = {
  readonly events: readonly SourceEvent[];
  readonly problems: readonly SourceProblem[];
};

/** Where a backfill takes events from that may not be in the landing table. */
export type EventSource = {
  /**
   * Cuts what the window takes into parts; null takes everything. Throws ServiceError `backfill_window` for a
   * window that the source cannot tell, `source_unreadable` for files that are not there, and those of the bus.
   */
  parts(window: BackfillWindow | null, signal: AbortSignal): Promise<readonly SourcePart[]>;
  /** Reads a part again each time it is asked. Memory is bounded by batches of some MB. */
  read(part: SourcePart, signal: AbortSignal): AsyncIterable<SourceBatch>;
};
