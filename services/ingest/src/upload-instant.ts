import type { Micros } from "@conversation-export/domain";
import type { Batch, WriteTicket } from "@conversation-export/warehouse";
import type { LandingGap } from "./landing-gap.ts";

/** Decides whether this process may write. */
export type WriteGate = {
  /** Resolves while rows may be inserted and waits otherwise. Rejects when `signal` aborts. */
  untilOpen(signal: AbortSignal): Promise<WriteTicket>;
};

/** The instant of upload of one batch, which stands in all its rows. */
export type Upload = {
  instant(): Micros;
  /**
   * Writes the present instant into every row of the batch. Without landing, the uploads of this instant are
   * noted as a gap before. Rejects when that note fails.
   */
  stamp(signal: AbortSignal): Promise<void>;
  /**
   * Leave to begin an INSERT; waits while this process may not write.
   * @throws `staleUpload` when the instant is more than a minute old by then, or readers may have passed it:
   * the batch must be stamped anew
   */
  ticket(signal: AbortSignal): Promise<WriteTicket>;
  /** The batch is written or given up. */
  end(): void;
};

export type Uploads = {
  begin(batch: Pick<Batch, "fillUpload">): Upload;
  /** The oldest instant of the uploads that have not ended; null when there is none. */
  oldest(): Micros | null;
};

/** The instant of upload is too old to begin another INSERT with it. */
export const staleUpload = new Error("the instant of upload is too old");

const MAX_AGE_MICROS = 60_000_000;

/**
 * @param deps.gap null when landing keeps every event
 * @param deps.uploadTime an instant for the next batch, never less than before
 */
export const createUploads = (deps: {
  readonly gate: WriteGate;
  readonly gap: LandingGap | null;
  readonly uploadTime: () => Micros;
}): Uploads => {
  const { gate, gap, uploadTime } = deps;
  const open = new Set<Upload>();
  return {
    begin: (batch) => {
      let instant = uploadTime();
      const upload: Upload = {
        instant: () => instant,
        stamp: async (signal) => {
          if (gap !== null) await gap.cover(signal);
          instant = uploadTime();
          batch.fillUpload(instant);
        },
        ticket: async (signal) => {
          const ticket = await gate.untilOpen(signal);
          const isLate = uploadTime() - instant > MAX_AGE_MICROS || instant < ticket.uploadFrom;
          if (isLate) throw staleUpload;
          return ticket;
        },
        end: () => open.delete(upload),
      };
      open.add(upload);
      return upload;
    },
    oldest: () => (open.size === 0 ? null : Math.min(...Array.from(open, (upload) => upload.instant()))),
  };
};
