import { randomUUID } from "node:crypto";
import { EVENT_TYPES, type EventType, type ExportRecord, type Micros } from "@conversation-export/domain";
import type { BackfillCounts } from "@conversation-export/queue";
import { type Logger, ServiceError } from "@conversation-export/runtime";
import {
  BACKFILL_RUN,
  type LandedEvent,
  type LandingCoverage,
  type LandingSelection,
  type RecordName,
  type RecordReader,
  recordKey,
  type RowReplacer,
  type WriteTicket,
} from "@conversation-export/warehouse";
import { addUp, type GrowingCounts, emptyCounts, noteProblem } from "./backfill-counts.ts";
import { isEmpty, judgeRecord, newPlan, type Plan } from "./judge-record.ts";
import type { PendingWrites } from "../process/pending-writes.ts";

const ROUNDS = 3;
/** Estimated size of a plan from which on it is written. One more record may exceed it. */
const PLAN_BYTES = 24 * 1024 * 1024;

/** Keeps erased records from being written. */
type Gate = {
  readonly suppresses: (records: readonly ExportRecord[]) => Promise<readonly boolean[]>;
  /** The same without noting the ids of the records, for a dry run. */
  readonly wouldSuppress: (records: readonly ExportRecord[]) => Promise<readonly boolean[]>;
  readonly untilOpen: (signal: AbortSignal) => Promise<WriteTicket>;
  /** An instant of upload for the next batch, µs. */
  readonly uploadTime: () => Micros;
};

export type CorrectionOptions = {
  readonly dryRun: boolean;
  /** null: nothing may be deleted. */
  readonly coverage: LandingCoverage | null;
  readonly signal: AbortSignal;
  readonly log: Logger;
  onEvents(read: number): void;
};

/** Records with rows that were or would be replaced, and the numbers of these rows. */
type Differing = {
  readonly records: readonly RecordName[];
  readonly inserted: number;
  readonly removed: number;
};

/**
 * Computes the records that have an event in `selection` anew from all their events in landing, corrects
 * their stored rows and compares again, in three rounds at most.
 * @throws ServiceError `backfill_unsettled` when every round finds wrong rows; WarehouseError
 */
export type CorrectRecords = (
  selection: LandingSelection,
  options: CorrectionOptions,
) => Promise<BackfillCounts>;

export const createCorrectRecords = (deps: {
  readonly reader: RecordReader;
  readonly replacer: RowReplacer;
  readonly gate: Gate;
  readonly pending: PendingWrites;
  readonly planBytes?: number;
}): CorrectRecords => {
  const { reader, replacer, gate, pending, planBytes = PLAN_BYTES } = deps;

  /** Compares all noted records of a type and passes the differences to `apply`, in plans of bounded size. */
  const compare = async (
    run: string,
    type: EventType,
    counts: GrowingCounts,
    options: CorrectionOptions,
    apply: (plan: Plan) => Promise<void>,
  ): Promise<void> => {
    const { coverage, signal, onEvents } = options;
    const suppressed = options.dryRun ? gate.wouldSuppress : gate.suppresses;
    let plan = newPlan(type);
    // Rows are read before landing, which is written first: so every row found here has its event there.
    const stored = await reader.stored(run, type, signal);
    let group: LandedEvent[] = [];
    const close = async (): Promise<void> => {
      const [first] = group;
      if (first === undefined) return;
      const rows = stored.get(recordKey(first.clientId, first.recordId)) ?? [];
      await judgeRecord(plan, group, rows, counts, { suppressed, coverage });
      group = [];
      if (plan.bytes < planBytes) return;
      await apply(plan);
      plan = newPlan(type);
    };
    for await (const events of reader.landed(run, type, signal)) {
      for (const event of events) {
        const [first] = group;
        if (first?.recordId !== event.recordId || first.clientId !== event.clientId) await close();
        group.push(event);
      }
      onEvents(events.length);
    }
    await close();
    await apply(plan);
  };

  /** Corrects the rows. Records that the warehouse refuses count as rejected and keep their rows. */
  const replace = async (
    run: string,
    plan: Plan,
    counts: GrowingCounts,
    signal: AbortSignal,
  ): Promise<Differing> => {
    const refused = isEmpty(plan)
      ? []
      : await pending.run(gate.uploadTime(), () =>
          replacer.replace(run, plan, {
            uploadedAt: gate.uploadTime,
            beforeInsert: () => gate.untilOpen(signal),
            signal,
          }),
        );
    const isRefused = new Set(refused.map(({ clientId, id }) => recordKey(clientId, id)));
    const refusedOf = ({ clientId, id }: RecordName): boolean => isRefused.has(recordKey(clientId, id));
    for (const { place } of plan.different.filter(refusedOf)) {
      counts.events.rejected += 1;
      const detail = "the warehouse refuses the row for its data";
      noteProblem(counts, { place, reason: "refused_by_warehouse", detail });
    }
    return count(plan, counts, refusedOf);
  };

  /** Compares all noted records once and, unless it is a dry run, corrects them. */
  const round = async (
    run: string,
    options: CorrectionOptions,
  ): Promise<{ counts: BackfillCounts; left: Differing }> => {
    const counts = emptyCounts();
    const left = { records: [] as RecordName[], inserted: 0, removed: 0 };
    const { dryRun, signal } = options;
    for (const type of EVENT_TYPES) {
      await gate.untilOpen(signal);
      // Covers the decision about what is suppressed and the writing.
      await pending.run(null, async () => {
        let plans = 0;
        await compare(run, type, counts, options, async (plan) => {
          plans += 1;
          const differing = dryRun
            ? count(plan, counts, () => false)
            : await replace(`${run}/${type}/${plans}`, plan, counts, signal);
          for (const record of differing.records) left.records.push(record);
          left.inserted += differing.inserted;
          left.removed += differing.removed;
        });
      });
    }
    return { counts, left };
  };

  /** Runs `work` with a name for its keys and removes the keys afterwards. */
  const withRun = async <T>(work: (run: string) => Promise<T>): Promise<T> => {
    const run = `${BACKFILL_RUN}${randomUUID()}`;
    try {
      return await work(run);
    } finally {
      // Keys that cannot be removed now are removed when a process starts.
      await reader.forget(run).catch(() => {});
    }
  };

  return async (selection, options) => {
    const { dryRun, signal, log } = options;
    const first = await withRun(async (run) => {
      await reader.noteSelected(run, selection, signal);
      return round(run, options);
    });
    const all = [first.counts];
    let { left } = first;
    for (let at = 2; at <= ROUNDS; at += 1) {
      if (left.records.length === 0) return addUp(all);
      const different = left.records;
      const next = await withRun(async (run) => {
        await reader.note(run, different, signal);
        return round(run, { ...options, onEvents: () => {} });
      });
      if (dryRun) {
        // Rows that ingest was just writing are visible by now.
        const { different: records } = next.counts.records;
        return {
          ...first.counts,
          records: { ...first.counts.records, different: records },
          rows: { ...next.counts.rows, undeletable: first.counts.rows.undeletable },
        };
      }
      // The records were counted in the first round; only their rows count again.
      const { inserted, deleted } = next.counts.rows;
      const none = emptyCounts();
      all.push({ ...none, rows: { ...none.rows, inserted, deleted } });
      ({ left } = next);
    }
    if (left.removed > 0) {
      throw new ServiceError("backfill_unsettled", "wrong rows came back while they were replaced", {
        retryable: true,
      });
    }
    if (left.inserted > 0) log.info("records change while they are compared");
    return addUp(all);
  };
};

/** Counts the rows of a plan without those of refused records. */
const count = (plan: Plan, counts: GrowingCounts, refusedOf: (record: RecordName) => boolean): Differing => {
  const { type } = plan;
  const inserted = plan.insert.filter(({ record }) => !refusedOf(record));
  const removed = plan.remove.filter(({ clientId, id }) => !refusedOf({ type, clientId, id }));
  for (const { table } of inserted) counts.rows.inserted[table] += 1;
  for (const { row } of removed) counts.rows.deleted[row.table] += 1;
  return {
    records: plan.different.filter((record) => !refusedOf(record)),
    inserted: inserted.length,
    removed: removed.length,
  };
};
