import { z } from "zod";
import type { JobType } from "./job.ts";

const dataSchema = z.object({
  /** null: the hour before `to`; without `to` and `clientId`, where the last such job ended. */
  from: z.iso.datetime().nullable().default(null),
  /** Rounded up to an hour; null: the last full hour's end. */
  to: z.iso.datetime().nullable().default(null),
  /** null: all. */
  clientId: z.string().min(1).nullable().default(null),
});

const count = z.int().nonnegative();

/** Messages of known clients. */
const fates = {
  /** This export or a later one. */
  readable: count,
  missing: count,
  /** Would be accepted now. */
  deadLetters: count,
  suppressed: count,
  erasedButReadable: count,
  /** Older than its client's retention. */
  expired: count,
};

const resultSchema = z.object({
  from: z.iso.datetime(),
  to: z.iso.datetime(),
  hours: z.array(
    z.object({
      hour: z.iso.datetime(),
      topic: z.string(),
      gone: count,
      /** Without a value. */
      ignored: count,
      /** Rejected, so dead letters. */
      refused: count,
      /** Partitions made again, read from their start. */
      madeAnew: count,
      clients: z.array(z.object({ clientId: z.string(), ...fates })),
    }),
  ),
  /** Also those that `differences` leaves out. */
  missing: count,
  erasedButReadable: count,
  /** Without the messages' content. */
  differences: z.array(
    z.object({
      fate: z.enum(["missing", "erased_but_readable"]),
      clientId: z.string(),
      type: z.string(),
      topic: z.string(),
      partition: count,
      offset: count,
      /** Lacks the record, a part of it or its place in a list. */
      table: z.string().optional(),
    }),
  ),
});

export type ReconcileData = z.output<typeof dataSchema>;
export type ReconcileResult = z.output<typeof resultSchema>;

/** A job that finds a difference fails, with the first as its reason. */
export const reconcileJob: JobType<ReconcileData, ReconcileResult> = {
  name: "reconcile",
  data: dataSchema,
  result: resultSchema,
};
