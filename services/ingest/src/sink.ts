import type { Micros } from "@conversation-export/domain";
import {
  type Batch,
  isRefusedData,
  refusedInHalves,
  type TableInsert,
  type Writer,
} from "@conversation-export/warehouse";
import type { IngestMetrics } from "./ingest-metrics.ts";
import { isBug, type KeepTrying } from "./keep-trying.ts";
import { staleUpload, type Upload, type Uploads } from "./upload-instant.ts";

export type Sink = {
  /**
   * Writes the rows of a batch table by table, as often as it takes. After a minute of waiting the batch is
   * stamped anew and begins again with its first table, so that all tables have one instant of upload.
   * Landing is written at once, the tables that readers see behind `before`. Rejects only when `signal`
   * aborts or `before` rejects.
   * @returns `refused`: indexes of the poison records, which ClickHouse refuses for their data; all others
   * are acknowledged. `reusable`: no attempt failed, so no request still reads the memory of the batch.
   */
  write(
    batch: Batch,
    signal: AbortSignal,
    before?: Promise<unknown>,
  ): Promise<{ readonly refused: readonly number[]; readonly reusable: boolean }>;
};

/** Records `from` (inclusive) to `to` (exclusive) of a batch that are in landing with the instant `at`. */
type Landed = { readonly from: number; readonly to: number; readonly at: Micros };

const LANDING = "landing";

const isFinal = (error: unknown): boolean => error === staleUpload || isRefusedData(error) || isBug(error);

export const createSink = (deps: {
  readonly writer: Pick<Writer, "insert">;
  readonly uploads: Uploads;
  readonly keepTrying: KeepTrying;
  readonly metrics: IngestMetrics;
}): Sink => {
  const { writer, uploads, keepTrying, metrics } = deps;

  const writeRows = async (
    batch: Batch,
    upload: Upload,
    before: Promise<unknown> | undefined,
    signal: AbortSignal,
  ): Promise<{ refused: number[]; reusable: boolean }> => {
    let reusable = true;
    const landed: Landed[] = [];
    const onFailure = (): void => {
      reusable = false;
    };

    const stamp = (): Promise<void> =>
      keepTrying({
        step: "landing_gap",
        signal,
        operation: () => upload.stamp(signal),
        isFinal,
        onFailure,
      });

    const insert = async (one: TableInsert): Promise<void> => {
      const started = performance.now();
      await keepTrying({
        step: one.table,
        signal,
        operation: async () => writer.insert(one, signal, await upload.ticket(signal)),
        isFinal,
        onFailure,
      });
      metrics.insert.observe({ table: one.table }, (performance.now() - started) / 1000);
      metrics.written.inc({ table: one.table }, one.rows);
    };

    const writeTables = async (from: number, to: number): Promise<void> => {
      for (const one of batch.inserts(from, to)) {
        if (one.table !== LANDING) {
          await before;
          await insert(one);
          continue;
        }
        const at = upload.instant();
        if (landed.some((done) => done.at === at && done.from <= from && to <= done.to)) continue;
        await insert(one);
        landed.push({ from, to, at });
      }
    };

    const writeRange = async (from: number, to: number): Promise<void> => {
      for (;;) {
        try {
          return await writeTables(from, to);
        } catch (error) {
          reusable = false;
          if (error !== staleUpload) throw error;
          metrics.stampedAnew.inc({});
          await stamp();
        }
      }
    };

    await stamp();
    const refused = await refusedInHalves(0, batch.records(), writeRange);
    return { refused, reusable };
  };

  return {
    write: async (batch, signal, before) => {
      if (batch.records() === 0) return { refused: [], reusable: true };
      const upload = uploads.begin(batch);
      try {
        return await writeRows(batch, upload, before, signal);
      } finally {
        upload.end();
      }
    },
  };
};
