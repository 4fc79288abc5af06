import type { BusMessage } from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import type { BackfillWindow } from "@conversation-export/queue";
import { z } from "zod";

const count = z.int().min(0);

/** Offsets of one partition, restricted to messages with this bus time (ms, `to` excluded). */
const kafkaPartSchema = z.object({
  kind: z.literal("kafka"),
  topic: z.string(),
  topicId: z.string().nullable(),
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

/** A part of a source as stored in the queue. */
export const sourcePartSchema = z.discriminatedUnion("kind", [kafkaPartSchema, filesPartSchema]);
export type SourcePart = z.infer<typeof sourcePartSchema>;

/**
 * An event as ingest would have received it. For a line of a file: topic `file:` with location and tag, the
 * line number as offset, reading time as bus time.
 */
export type SourceEvent = { readonly type: EventType; readonly message: BusMessage };

/** Input that is no event: its place and the reason, without its content. */
export type SourceProblem = { readonly place: string; readonly reason: string; readonly detail: string };

/** Some events of a part in order; each place holds an event or a problem. */
export type SourceBatch = {
  readonly events: readonly SourceEvent[];
  readonly problems: readonly SourceProblem[];
};

/** Source of a backfill other than the landing table. */
export type EventSource = {
  /**
   * Cuts the window into parts; null: everything.
   * @throws ServiceError `backfill_window` for a window that the source does not support, `source_unreadable`
   *   for missing files, and those of the bus
   */
  parts(window: BackfillWindow | null, signal: AbortSignal): Promise<readonly SourcePart[]>;
  /** Reads a part; may be repeated. Batches are bounded to some MB. */
  read(part: SourcePart, signal: AbortSignal): AsyncIterable<SourceBatch>;
};
