import type { BusMessage } from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import type { BackfillWindow } from "@conversation-export/queue";
import { z } from "zod";

const count = z.int().min(0);

/** `busTime` in ms, `to` excluded. */
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
  /** A path, or `s3://bucket/key`. */
  location: z.string(),
  size: count,
  /** Changes with the content. */
  tag: z.string(),
});
export type SourceFile = z.infer<typeof fileSchema>;

const filesPartSchema = z.object({ kind: z.literal("files"), files: z.array(fileSchema) });
export type FilesPart = z.infer<typeof filesPartSchema>;

export const sourcePartSchema = z.discriminatedUnion("kind", [kafkaPartSchema, filesPartSchema]);
export type SourcePart = z.infer<typeof sourcePartSchema>;

/** A line has topic `file:`, its number as offset, reading time as bus time. */
export type SourceEvent = { readonly type: EventType; readonly message: BusMessage };

export type SourceProblem = { readonly place: string; readonly reason: string; readonly detail: string };

export type SourceBatch = {
  readonly events: readonly SourceEvent[];
  readonly problems: readonly SourceProblem[];
};

export type EventSource = {
  /** @throws ServiceError `backfill_window`, `source_unreadable`, those of the bus */
  parts(window: BackfillWindow | null, signal: AbortSignal): Promise<readonly SourcePart[]>;
  /** May be repeated. */
  read(part: SourcePart, signal: AbortSignal): AsyncIterable<SourceBatch>;
};
