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
  /** From `from` on, before `to`: of the upload, or of the export (`time` of the event). */
  z.object({ by: z.enum(["upload", "event"]), from: instant, to: instant }),
  z.object({
    by: z.literal("offsets"),
    topic: z.string().min(1),
    /** From `from` on, before `to`. */
    ranges: z.array(z.object({ partition: z.int().min(0).max(0xffff), from: count, to: count })).min(1),
  }),
]);

export const backfillDataSchema = z.object({
  /** null: all clients. */
  clientId: z.string().min(1).nullable().default(null),
  source: sourceSchema,
  /** null: everything that the source has. */
  window: windowSchema.nullable().default(null),
  dryRun: z.boolean().default(false),
  /** Messages that ingest may lag behind before the job waits for it; null: it does not wait. */
  maxLag: count.nullable().default(null),
  /** Events that the job may read a second; null: as many as it can. */
  rowsPerSecond: z.int().min(1).nullable().default(null),
});
export type BackfillData = z.infer<typeof backfillDataSchema>;
export type BackfillSource = BackfillData["source"];
export type BackfillWindow = NonNullable<BackfillData["window"]>;

const tableCountsSchema = z.object(byRecordTable(() => count));
/** Rows of each table that readers see. */
export type TableCounts = z.infer<typeof tableCountsSchema>;

export const backfillCountsSchema = z.object({
  events: z.object({ read: count, suppressed: count, rejected: count, ignored: count }),
  /** Records with an event in the window; `different`: a stored row was wrong or missing. */
  records: z.object({ examined: count, different: count }),
  rows: z.object({
    inserted: tableCountsSchema,
    deleted: tableCountsSchema,
    /** Wrong or unexplained rows from before the coverage of landing, which are left as they are. */
    undeletable: tableCountsSchema,
  }),
  /** The first events that could not be used: their places and the reasons, without their content. */
  problems: z.array(z.object({ place: z.string(), reason: z.string(), detail: z.string() })),
});
/** What a backfill or a part of it found and did, or with `dryRun` would do. */
export type BackfillCounts = z.infer<typeof backfillCountsSchema>;

export const backfillResultSchema = backfillCountsSchema.extend({
  dryRun: z.boolean(),
  parts: count,
  /** Rows uploaded and created earlier cannot be deleted; null: the landing table proves nothing. */
  deletableSince: instant.nullable(),
  /**
   * Records of the window that were uploaded before this instant, from which on landing is complete, and were
   * not all computed again; null: there are none.
   */
  uncovered: z.object({ before: instant, records: count }).nullable(),
});
export type BackfillResult = z.infer<typeof backfillResultSchema>;

/** Processes a window again with the current code, from the landing table, the bus or files. */
export const backfillJob: JobType<BackfillData, BackfillResult> = {
  name: "backfill",
  data: backfillDataSchema,
  result: backfillResultSchema,
};
