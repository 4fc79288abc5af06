import { z } from "zod";
import type { JobType } from "./job.ts";

const dataSchema = z.object({
  /**
   * Start of the first hour; null: the last whole hour before `to`, and when `to` and `clientId` are null
   * too, where the last such job ended.
   */
  from: z.iso.datetime().nullable().default(null),
  /** End of the last hour, rounded up to a whole hour; null: the end of the last hour that is over. */
  to: z.iso.datetime().nullable().default(null),
  /** null: all clients. */
  clientId: z.string().min(1).nullable().default(null),
});

const count = z.int().nonnegative();

/** Numbers of messages whose client is known, by outcome. */
const fates = {
  /** This export or a later one is readable. */
  readable: count,
  /** Neither readable nor explained by the outcomes below. */
  missing: count,
  /** Found among the dead letters, although it would be accepted now. */
  deadLetters: count,
  suppressed: count,
  /** About an erased person and readable. */
  erasedButReadable: count,
  /** Older than its client wants to keep. */
  expired: count,
};

const resultSchema = z.object({
  from: z.iso.datetime(),
  to: z.iso.datetime(),
  hours: z.array(
    z.object({
      hour: z.iso.datetime(),
      topic: z.string(),
      /** Messages that Kafka no longer holds. */
      gone: count,
      /** Messages without a value. */
      ignored: count,
      /** Messages that are refused, and so are dead letters. */
      refused: count,
      /** Partitions that were made again since the last comparison, and read from their start. */
      madeAnew: count,
      clients: z.array(z.object({ clientId: z.string(), ...fates })),
    }),
  ),
  /** All, including those beyond the bound of `differences`. */
  missing: count,
  erasedButReadable: count,
  /** Places of the messages, without their content. */
  differences: z.array(
    z.object({
      fate: z.enum(["missing", "erased_but_readable"]),
      clientId: z.string(),
      type: z.string(),
      topic: z.string(),
      partition: count,
      offset: count,
      /** That lacks the record, a part of it or its place in a list. */
      table: z.string().optional(),
    }),
  ),
});

export type ReconcileData = z.output<typeof dataSchema>;
export type ReconcileResult = z.output<typeof resultSchema>;

/**
 * Compares what the bus carried with what is readable. A job that finds a difference fails, with the first of
 * it as its reason.
 */
export const reconcileJob: JobType<ReconcileData, ReconcileResult> = {
  name: "reconcile",
  data: dataSchema,
  result: resultSchema,
};
