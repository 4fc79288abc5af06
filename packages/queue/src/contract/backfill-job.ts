import { byRecordTable } from "@conversation-export/domain";
import { z } from "zod";
import type { JobType } from "./job.ts";

const instant = z.iso.datetime({ offset: true });
const count = z.int().min(0);

const sourceSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("landing") }),
  z.object({ kind: z.literal("kafka") }),
  z.object({
    kind: z.literal("files"),
    /** A file, a folder, or `s3://bucket/prefix`. */
    location: z.string().min(1),
  }),
]);

const windowSchema = z.discriminatedUnion("by", [
  /** By upload, or by the event's `time`; `to` is exclusive. */
  z.object({ by: z.enum(["upload", "event"]), from: instant, to: instant }),
  z.object({
    by: z.literal("offsets"),
    topic: z.string().min(1),
    /** `to` is exclusive. */
    ranges: z.array(z.object({ partition: z.int().min(0).max(0xffff), from: count, to: count })).min(1),
  }),
]);

export const backfillDataSchema = z.object({
  /** null: all. */
  clientId: z.string().min(1).nullable().default(null),
  source: sourceSchema,
  /** null: all of the source. */
  window: windowSchema.nullable().default(null),
  dryRun: z.boolean().default(false),
  /** Lag of ingest, in messages, above which the job waits; null: never. */
  maxLag: count.nullable().default(null),
  /** Events; null: no limit. */
  rowsPerSecond: z.int().min(1).nullable().default(null),
});
export type BackfillData = z.infer<typeof backfillDataSchema>;
export type BackfillSource = BackfillData["source"];
export type BackfillWindow = NonNullable<BackfillData["window"]>;

const tableCountsSchema = z.object(byRecordTable(() => count));
export type TableCounts = z.infer<typeof tableCountsSchema>;

export const backfillCountsSchema = z.object({
  events: z.object({ read: count, suppressed: count, rejected: count, ignored: count }),
  records: z.object({ examined: count, different: count }),
  rows: z.object({
    inserted: tableCountsSchema,
    deleted: tableCountsSchema,
    /** From before landing's coverage, so left as they are. */
    undeletable: tableCountsSchema,
  }),
  /** The first ones, without content. */
  problems: z.array(z.object({ place: z.string(), reason: z.string(), detail: z.string() })),
});
export type BackfillCounts = z.infer<typeof backfillCountsSchema>;

export const backfillResultSchema = backfillCountsSchema.extend({
  dryRun: z.boolean(),
  parts: count,
  deletableSince: instant.nullable(),
  /** Records uploaded before landing was complete and not all computed again; null: none. */
  uncovered: z.object({ before: instant, records: count }).nullable(),
});
export type BackfillResult = z.infer<typeof backfillResultSchema>;

export const backfillJob: JobType<BackfillData, BackfillResult> = {
  name: "backfill",
  data: backfillDataSchema,
  result: backfillResultSchema,
};
