import type { BusMessage } from "@conversation-export/bus";
import {
  EVENT_TYPES,
  type ExportRecord,
  type Micros,
  readMessage,
  type RightRow,
  type WriteTicket,
} from "@conversation-export/domain";
import type { BackfillCounts, BackfillWindow } from "@conversation-export/queue";
import { isRetryable, retry } from "@conversation-export/runtime";
import type { SuppressionGate } from "@conversation-export/suppression";
import {
  type Batch,
  createBatch,
  insertHalves,
  isStaleTicket,
  type RunUpload,
  type Writer,
} from "@conversation-export/warehouse";
import { emptyCounts, noteProblem } from "./backfill-counts.ts";
import { microsOf } from "./landing-parts.ts";
import type { SourceBatch } from "../sources/event-source.ts";

export type EventFilter = {
  readonly clientId: string | null;
  /** Applied only when by event: sources cannot select by an event's instant. */
  readonly window: BackfillWindow | null;
  readonly dryRun: boolean;
};

export type AddEvents = {
  /** Deletes nothing, may be repeated. @throws WarehouseError */
  add(batch: SourceBatch, filter: EventFilter, signal: AbortSignal): Promise<BackfillCounts>;
};

/** For one ticket; readers wait about as long. */
const RETRY_MS = 30_000;
const FIRST_BYTES = 1 << 16;

type Accepted = { readonly record: ExportRecord; readonly message: BusMessage };

const placeOf = ({ topic, partition, offset }: BusMessage): string =>
  topic.startsWith("file:")
    ? `${topic.slice(5).replace(/#[^#]*$/, "")}:${offset}`
    : `${topic}/${partition}/${offset}`;

const isInside = (exportedAt: Micros, window: BackfillWindow | null): boolean =>
  window?.by !== "event" || (exportedAt >= microsOf(window.from) && exportedAt < microsOf(window.to));

export function createAddEvents(deps: {
  readonly writer: Pick<Writer, "insert">;
  readonly gate: Pick<SuppressionGate, "suppresses" | "wouldSuppress">;
  readonly runUpload: RunUpload;
  readonly preview: (
    records: readonly ExportRecord[],
    signal: AbortSignal,
  ) => Promise<readonly (readonly Pick<RightRow, "table">[])[]>;
  readonly noteClients: (records: readonly ExportRecord[]) => Promise<void>;
  readonly landingDays: number;
  /** An event may claim to be this much later than its arrival. */
  readonly maxTimeAheadMs: number;
  readonly now: () => number;
}): AddEvents {
  const { writer, gate, runUpload, preview, noteClients, landingDays, maxTimeAheadMs, now } = deps;

  function fill(accepted: readonly Accepted[]): { batch: Batch; records: Accepted[] }[] {
    const filled: { batch: Batch; records: Accepted[] }[] = [];
    for (const type of EVENT_TYPES) {
      let current: { batch: Batch; records: Accepted[] } | undefined;
      for (const one of accepted) {
        if (one.record.type !== type) continue;
        if (current === undefined || current.batch.spansTooManyPartitions()) {
          current = { batch: createBatch(type, FIRST_BYTES, { landingDays }), records: [] };
          filled.push(current);
        }
        current.batch.add(one.record, one.message);
        current.records.push(one);
      }
    }
    return filled;
  }

  /** Resolves to the indexes of rejected records. */
  const write = (batch: Batch, ticket: WriteTicket, signal: AbortSignal): Promise<number[]> =>
    insertHalves(batch, batch.records(), (insert) =>
      retry(() => writer.insert(insert, ticket, signal), {
        signal,
        deadlineMs: RETRY_MS,
        retryable: (error) => isRetryable(error) && !isStaleTicket(error),
      }),
    );

  return {
    add: async ({ events, problems }, { clientId, window, dryRun }, signal) => {
      const counts = emptyCounts();
      const reject = (place: string, reason: string, detail: string): void => {
        counts.events.rejected += 1;
        noteProblem(counts, { place, reason, detail });
      };
      counts.events.read = events.length + problems.length;
      for (const { place, reason, detail } of problems) reject(place, reason, detail);

      const accepted: Accepted[] = [];
      const limits = { maxTimeAheadMs, now: now() };
      for (const { type, message } of events) {
        const outcome = readMessage(message, type, limits);
        if (outcome.kind === "rejected") reject(placeOf(message), outcome.reason, outcome.detail);
        else if (outcome.kind === "ignored") counts.events.ignored += 1;
        else if (
          (clientId === null || outcome.record.clientId === clientId) &&
          isInside(outcome.record.version.exportedAt, window)
        ) {
          accepted.push({ record: outcome.record, message });
        }
      }

      // So that erased ids are not looked up.
      const all = accepted.map(({ record }) => record);
      const erased = await gate.wouldSuppress(all);
      const known = all.filter((_, index) => erased[index] !== true);
      const previews = await preview(known, signal);
      const lacking = new Map(known.map((record, index) => [record, previews[index] ?? []]));
      const count = ({ record }: Accepted): void => {
        const rows = lacking.get(record) ?? [];
        counts.records.examined += 1;
        if (rows.length > 0) counts.records.different += 1;
        for (const { table } of rows) counts.rows.inserted[table] += 1;
      };
      if (dryRun) {
        counts.events.suppressed += accepted.length - known.length;
        for (const one of accepted.filter(({ record }) => lacking.has(record))) count(one);
        return counts;
      }

      let stored: readonly ExportRecord[] = [];
      await runUpload(async (ticket) => {
        const suppressed = await gate.suppresses(all);
        const kept = accepted.filter((_, index) => suppressed[index] !== true);
        const changing = kept.filter(({ record }) => (lacking.get(record)?.length ?? 0) > 0);
        const refused = new Set<Accepted>();
        for (const { batch, records } of fill(changing)) {
          batch.fillUpload(ticket.stamp);
          for (const index of await write(batch, ticket, signal)) {
            const one = records[index];
            if (one !== undefined) refused.add(one);
          }
        }
        stored = kept.map(({ record }) => record);
        counts.events.suppressed += accepted.length - kept.length;
        const detail = "the warehouse refuses the row for its data";
        for (const one of kept) {
          if (refused.has(one)) reject(placeOf(one.message), "refused_by_warehouse", detail);
          else count(one);
        }
      }, signal);
      await noteClients(stored);
      return counts;
    },
  };
}
