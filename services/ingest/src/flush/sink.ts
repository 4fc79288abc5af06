import type { WriteTicket } from "@conversation-export/domain";
import {
  type Batch,
  isRefusedData,
  refusedInHalves,
  type TableInsert,
  type Writer,
} from "@conversation-export/warehouse";
import type { IngestMetrics } from "../ingest-metrics.ts";
import { isBug, type KeepTrying } from "./keep-trying.ts";

/** `to` is exclusive. */
export type RecordRange = { readonly from: number; readonly to: number };

export type Sink = {
  /** Visible tables wait for `before`; `refused`: indexes; `reusable`: no request still reads the batch. */
  write(
    batch: Batch,
    range: RecordRange,
    ticket: WriteTicket,
    signal: AbortSignal,
    before?: Promise<unknown>,
  ): Promise<{ readonly refused: readonly number[]; readonly reusable: boolean }>;
};

const LANDING = "landing";

const isFinal = (error: unknown): boolean => isRefusedData(error) || isBug(error);

export const createSink = (deps: {
  readonly writer: Pick<Writer, "insert">;
  readonly keepTrying: KeepTrying;
  readonly metrics: IngestMetrics;
}): Sink => {
  const { writer, keepTrying, metrics } = deps;
  return {
    write: async (batch, range, ticket, signal, before) => {
      let reusable = true;
      const landed: RecordRange[] = [];

      const insert = async (one: TableInsert): Promise<void> => {
        const started = performance.now();
        await keepTrying({
          step: one.table,
          signal,
          operation: () => writer.insert(one, ticket, signal),
          isFinal,
          onFailure: () => {
            reusable = false;
          },
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
          if (landed.some((done) => done.from <= from && to <= done.to)) continue;
          await insert(one);
          landed.push({ from, to });
        }
      };

      batch.fillUpload(ticket.stamp);
      const refused = await refusedInHalves(range.from, range.to, async (from, to) => {
        try {
          await writeTables(from, to);
        } catch (error) {
          reusable = false;
          throw error;
        }
      });
      return { refused, reusable };
    },
  };
};
