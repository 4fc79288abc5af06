import { z } from "zod";
import type { JobType } from "./job.ts";

/** Dead letters of records that were replayed this often are left out. */
export const DEFAULT_MAX_REPLAYS = 3;

const dataSchema = z.object({
  /** Topic from which the dead letters came, without `.dead-letter`; null: all topics. */
  topic: z.string().min(1).nullable().default(null),
  /** Why the records were rejected; null: any reason. */
  reasons: z.array(z.string().min(1)).min(1).nullable().default(null),
  /** Refused at or after this instant. */
  from: z.iso.datetime().nullable().default(null),
  /** Refused before this instant. */
  to: z.iso.datetime().nullable().default(null),
  /** One dead letter by its place in the dead-letter topic of `topic`; null: all. */
  place: z
    .object({ partition: z.int().nonnegative(), offset: z.int().nonnegative() })
    .nullable()
    .default(null),
  /** Also dead letters that were replayed before. */
  again: z.boolean().default(false),
  /** A dead letter whose record was replayed this often is left out. */
  maxReplays: z.int().min(1).max(100).default(DEFAULT_MAX_REPLAYS),
  dryRun: z.boolean().default(false),
});

const count = z.int().nonnegative();

const resultSchema = z.object({
  dryRun: z.boolean(),
  read: count,
  /** Dead letters that were sent to their topic, or would be in a dry run. */
  replayed: count,
  /** `replayed` by topic, dot, reason. */
  byReason: z.array(z.object({ topic: z.string(), reason: z.string(), deadLetters: count })),
  skipped: z.object({
    /** Not selected by the data of the job. */
    notMatching: count,
    replayedBefore: count,
    tooManyReplays: count,
    /** The payload was too large for a dead letter and is no longer on its topic. */
    withoutPayload: count,
    /** Not a dead letter of this service. */
    unreadable: count,
  }),
});

export type ReplayData = z.output<typeof dataSchema>;
export type ReplayResult = z.output<typeof resultSchema>;

/** Sends dead letters to the topic of their records again. */
export const replayJob: JobType<ReplayData, ReplayResult> = {
  name: "replay",
  data: dataSchema,
  result: resultSchema,
};
