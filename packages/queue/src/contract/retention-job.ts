import { z } from "zod";
import type { JobType } from "./job.ts";

const dataSchema = z.object({
  /** null: every client that has a retention. */
  clientId: z.string().min(1).nullable().default(null),
  dryRun: z.boolean().default(false),
});

const count = z.int().nonnegative();

const resultSchema = z.object({
  dryRun: z.boolean(),
  /** Rows older than `before` were deleted. */
  clients: z.array(z.object({ clientId: z.string(), days: z.int().positive(), before: z.iso.datetime() })),
  /** Stored rows, superseded versions included, that were deleted or would be in a dry run. */
  tables: z.array(
    z.object({
      table: z.string(),
      rows: count,
      /** Rows that were dropped with whole parts of the table. */
      rowsDropped: count,
      byClient: z.array(z.object({ clientId: z.string(), rows: count })),
    }),
  ),
});

export type RetentionData = z.output<typeof dataSchema>;
export type RetentionResult = z.output<typeof resultSchema>;

/** Deletes what is older than its client wants to keep. */
export const retentionJob: JobType<RetentionData, RetentionResult> = {
  name: "retention",
  data: dataSchema,
  result: resultSchema,
};
