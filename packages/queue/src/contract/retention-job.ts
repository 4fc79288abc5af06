import { z } from "zod";
import type { JobType } from "./job.ts";

const dataSchema = z.object({
  clientId: z.string().min(1).nullable().default(null),
  dryRun: z.boolean().default(false),
});

const count = z.int().nonnegative();

const resultSchema = z.object({
  dryRun: z.boolean(),
  clients: z.array(z.object({ clientId: z.string(), days: z.int().positive(), before: z.iso.datetime() })),
  /** Superseded versions included. */
  tables: z.array(
    z.object({
      table: z.string(),
      rows: count,
      /** Dropped with whole parts of the table. */
      rowsDropped: count,
      byClient: z.array(z.object({ clientId: z.string(), rows: count })),
    }),
  ),
});

export type RetentionData = z.output<typeof dataSchema>;
export type RetentionResult = z.output<typeof resultSchema>;

export const retentionJob: JobType<RetentionData, RetentionResult> = {
  name: "retention",
  data: dataSchema,
  result: resultSchema,
};
