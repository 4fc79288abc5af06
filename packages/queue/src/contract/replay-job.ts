import { z } from "zod";
import type { JobType } from "./job.ts";

export const DEFAULT_MAX_REPLAYS = 3;

const dataSchema = z.object({
  /** Without `.dead-letter`; null: all topics. */
  topic: z.string().min(1).nullable().default(null),
  reasons: z.array(z.string().min(1)).min(1).nullable().default(null),
  /** Time of the rejection. */
  from: z.iso.datetime().nullable().default(null),
  /** Exclusive. */
  to: z.iso.datetime().nullable().default(null),
  place: z
    .object({ partition: z.int().nonnegative(), offset: z.int().nonnegative() })
    .nullable()
    .default(null),
  again: z.boolean().default(false),
  /** Records replayed this often are left out. */
  maxReplays: z.int().min(1).max(100).default(DEFAULT_MAX_REPLAYS),
  dryRun: z.boolean().default(false),
});

const count = z.int().nonnegative();

const resultSchema = z.object({
  dryRun: z.boolean(),
  read: count,
  /** In a dry run: would be. */
  replayed: count,
  byReason: z.array(z.object({ topic: z.string(), reason: z.string(), deadLetters: count })),
  skipped: z.object({
    notMatching: count,
    replayedBefore: count,
    tooManyReplays: count,
    /** Too large for a dead letter, and gone from its topic. */
    withoutPayload: count,
    /** Refused by the topic for its size. */
    tooLarge: count,
    /** Not a dead letter of this service. */
    unreadable: count,
  }),
});

export type ReplayData = z.output<typeof dataSchema>;
export type ReplayResult = z.output<typeof resultSchema>;

export const replayJob: JobType<ReplayData, ReplayResult> = {
  name: "replay",
  data: dataSchema,
  result: resultSchema,
};
