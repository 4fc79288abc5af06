import { randomUUID } from "node:crypto";
import {
  busPositionOf,
  correctionOf,
  EVENT_TYPES,
  type EventType,
  type ExportRecord,
  type Micros,
  processEvent,
  type RecordTable,
  type RightRow,
  type StoredRow,
  versionNumber,
} from "@conversation-export/domain";
import type { BackfillCounts } from "@conversation-export/queue";
import { type Logger, ServiceError } from "@conversation-export/runtime";
import {
  BACKFILL_RUN,
  contentDigest,
  type LandedEvent,
  type LandingCoverage,
  type LandingSelection,
  type RecordName,
  type RecordReader,
  recordKey,
  type RowReplacer,
  type WriteTicket,
  type WrongRow,
} from "@conversation-export/warehouse";
import { addUp, type GrowingCounts, emptyCounts, noteProblem } from "./backfill-counts.ts";
import type { PendingWrites } from "./pending-writes.ts";

const ROUNDS = 3;
/** Of what right rows say, how much is held before it is written; a record more may come on top. */
const PLAN_BYTES = 24 * 1024 * 1024;
/** About what a row to delete takes. */
const KEY_BYTES = 400;

/** The part of a version that is the place on the bus. */
const PLACE = (1n << 64n) - 1n;

const placeOf = ({ topic, partition, offset }: LandedEvent): string => `${topic}/${partition}/${offset}`;

/** What keeps erased records away. */
type Gate = {
  readonly suppresses: (record: ExportRecord) => boolean;
  /** The same, and leaves nothing behind: for a dry run. */
  readonly wouldSuppress: (record: ExportRecord) => boolean;
  readonly untilOpen: (signal: AbortSignal) => Promise<WriteTicket>;
};

export type CorrectionOptions = {
  readonly dryRun: boolean;
  /** null: nothing may be deleted. */
  readonly coverage: LandingCoverage | null;
  readonly signal: AbortSignal;
  readonly log: Logger;
  onEvents(read: number): void;
};

/** What differs among the records of one type. */
type Plan = {
  readonly type: EventType;
  readonly insert: RightRow[];
  readonly remove: WrongRow[];
  readonly outranked: Set<RecordTable>;
  /** `place`: of its last event. */
  readonly different: (RecordName & { readonly place: string })[];
  /** About what the plan holds. */
  bytes: number;
};

/** Records of which rows were or would be replaced, and how many rows. */
type Differing = {
  readonly records: readonly RecordName[];
  readonly inserted: number;
  readonly removed: number;
};

const newPlan = (type: EventType): Plan => ({
  type,
  insert: [],
  remove: [],
  outranked: new Set(),
  different: [],
  bytes: 0,
});

const isEmpty = ({ insert, remove }: Plan): boolean => insert.length === 0 && remove.length === 0;

/**
 * Computes the records that have an event in `selection` anew from all their events in the landing table and puts
 * right what stands for them, then looks again, at most three times. Throws `WarehouseError`, and ServiceError
 * `backfill_unsettled` when wrong rows are found each time.
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
  readonly now: () => Micros;
  readonly planBytes?: number;
}): CorrectRecords => {
  const { reader, replacer, gate, pending, now, planBytes = PLAN_BYTES } = deps;

  /** Compares one record, whose events are all there. */
  const judge = (
    plan: Plan,
    events: readonly LandedEvent[],
    stored: readonly StoredRow[],
    counts: GrowingCounts,
    { coverage, dryRun }: CorrectionOptions,
  ): void => {
    const [first] = events;
    if (first === undefined) return;
    const isSuppressed = dryRun ? gate.wouldSuppress : gate.suppresses;
    const { clientId, recordId: id } = first;
    const exports: ExportRecord[] = [];
    const untouchable = new Set<bigint>();
    const places = new Set<bigint>();
    for (const event of events) {
      counts.events.read += 1;
      const place = placeOf(event);
      const position = busPositionOf(event);
      places.add(versionNumber({ ...position, exportedAt: 0 }));
      const outcome = processEvent({ text: event.text, headers: event.headers, position }, plan.type);
      if (outcome.kind !== "accepted") {
        counts.events[outcome.kind] += 1;
        const detail = outcome.kind === "rejected" ? outcome.detail : "";
        noteProblem(counts, { place, reason: outcome.reason, detail });
        continue;
      }
      const { record } = outcome;
      if (record.id !== id || record.clientId !== clientId) {
        // Whatever else landed for that record would have to be known.
        counts.events.rejected += 1;
        noteProblem(counts, { place, reason: "other_record", detail: "landed under another id or client" });
        return;
      }
      if (isSuppressed(record)) {
        counts.events.suppressed += 1;
        untouchable.add(versionNumber(record.version));
      } else {
        exports.push(record);
      }
    }
    counts.records.examined += 1;
    const dates = exports.length > 0 ? exports : events;
    const created = Math.min(...dates.map(({ dateCreated }) => dateCreated));
    // The event that a row came from must be there itself: its day may have been dropped since coverage was asked for.
    const isDeletable = ({ uploadedAt, version }: StoredRow): boolean =>
      coverage !== null &&
      places.has(version & PLACE) &&
      created >= coverage.since &&
      uploadedAt >= coverage.since &&
      uploadedAt <= coverage.asOf;
    const { insert, remove, undeletable, outranked } = correctionOf({
      exports,
      untouchable,
      stored,
      isDeletable,
      digestOf: contentDigest,
    });
    for (const { table } of undeletable) counts.rows.undeletable[table] += 1;
    if (insert.length === 0 && remove.length === 0) return;
    counts.records.different += 1;
    const last = events.at(-1) ?? first;
    plan.different.push({ type: plan.type, clientId, id, place: placeOf(last) });
    plan.bytes += remove.length * KEY_BYTES;
    if (insert.length > 0) for (const { text } of events) plan.bytes += text.length;
    for (const row of insert) plan.insert.push(row);
    for (const row of remove) plan.remove.push({ clientId, id, row });
    for (const table of outranked) plan.outranked.add(table);
  };

  /** Compares all noted records of a type, and hands over what differs in plans of a bounded size. */
  const compare = async (
    run: string,
    type: EventType,
    counts: GrowingCounts,
    options: CorrectionOptions,
    apply: (plan: Plan) => Promise<void>,
  ): Promise<void> => {
    const { signal, onEvents } = options;
    let plan = newPlan(type);
    // Before the landing table, which is written first: so every row that is found has its event there.
    const stored = await reader.stored(run, type, signal);
    let group: LandedEvent[] = [];
    const close = async (): Promise<void> => {
      const [first] = group;
      if (first === undefined) return;
      const rows = stored.get(recordKey(first.clientId, first.recordId)) ?? [];
      judge(plan, group, rows, counts, options);
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

  /** Puts right what differs. What the warehouse refuses is counted as rejected, and its rows stay. */
  const replace = async (
    run: string,
    plan: Plan,
    counts: GrowingCounts,
    signal: AbortSignal,
  ): Promise<Differing> => {
    const refused = isEmpty(plan)
      ? []
      : await replacer.replace(run, plan, {
          uploadedAt: now,
          beforeInsert: () => gate.untilOpen(signal),
          signal,
        });
    const isRefused = new Set(refused.map(({ clientId, id }) => recordKey(clientId, id)));
    const refusedOf = ({ clientId, id }: RecordName): boolean => isRefused.has(recordKey(clientId, id));
    for (const { place } of plan.different.filter(refusedOf)) {
      counts.events.rejected += 1;
      const detail = "the warehouse refuses the row for its data";
      noteProblem(counts, { place, reason: "refused_by_warehouse", detail });
    }
    return count(plan, counts, refusedOf);
  };

  /** Counts the rows of a plan but those of refused records. */
  const count = (
    plan: Plan,
    counts: GrowingCounts,
    refusedOf: (record: RecordName) => boolean,
  ): Differing => {
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
      // From the decision about what is suppressed until it is written.
      await pending.run(now(), async () => {
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

  /** Runs `work` with a name for its keys, which are forgotten behind it. */
  const withRun = async <T>(work: (run: string) => Promise<T>): Promise<T> => {
    const run = `${BACKFILL_RUN}${randomUUID()}`;
    try {
      return await work(run);
    } finally {
      // Those that cannot be forgotten now are when a process starts.
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
        // What ingest was only about to write is there by now.
        const { different: records } = next.counts.records;
        return {
          ...first.counts,
          records: { ...first.counts.records, different: records },
          rows: { ...next.counts.rows, undeletable: first.counts.rows.undeletable },
        };
      }
      // The same records again: only what is done to their rows counts.
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
