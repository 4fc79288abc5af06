import type { EventType, Micros } from "@conversation-export/domain";
import type { BackfillCounts } from "@conversation-export/queue";
import type { SuppressionGate } from "@conversation-export/suppression";
import {
  type BackfillRuns,
  type HashRange,
  hashKey,
  type LandedEvent,
  type LandingCoverage,
  recordKey,
  type RightRows,
  type RunUpload,
} from "@conversation-export/warehouse";
import { type GrowingCounts, emptyCounts, noteProblem } from "./backfill-counts.ts";
import { judgeRecord, newPlan, type Plan } from "./judge-record.ts";

/** Estimated. */
const PLAN_BYTES = 24 * 1024 * 1024;

type Gate = Pick<SuppressionGate, "suppresses" | "wouldSuppress" | "ticket" | "judgement">;

export type RunFacts = {
  readonly run: string;
  /** null: nothing may be deleted. */
  readonly coverage: LandingCoverage | null;
  /** Rows of events landed before this were stored when the run's rows were read. */
  readonly stableUpTo: Micros;
};

export type CorrectionOptions = {
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
  onEvents(read: number): void;
  onWritten(plan: Plan): Promise<void>;
};

/** Deletes nothing. @throws WarehouseError */
export type CorrectRecords = (
  facts: RunFacts,
  range: HashRange,
  options: CorrectionOptions,
) => Promise<BackfillCounts>;

export const createCorrectRecords = (deps: {
  readonly runs: Pick<BackfillRuns, "stored" | "landed">;
  readonly rows: RightRows;
  readonly gate: Gate;
  readonly runUpload: RunUpload;
  readonly planBytes?: number;
}): CorrectRecords => {
  const { runs, rows, gate, runUpload, planBytes = PLAN_BYTES } = deps;

  const without = (plan: Plan, names: { has(name: string): boolean }): Plan => ({
    ...plan,
    insert: plan.insert.filter(({ record }) => !names.has(recordKey(record.clientId, record.id))),
    remove: plan.remove.filter(({ clientId, id }) => !names.has(recordKey(clientId, id))),
    different: plan.different.filter(({ name }) => !names.has(name)),
  });

  /** Newer suppressions than the plan's may drop records. */
  const judgedAgain = async (plan: Plan, counts: GrowingCounts): Promise<Plan> => {
    const records = [...new Set(plan.insert.map(({ record }) => record))];
    const suppressed = await gate.suppresses(records);
    const dropped = records.filter((_, at) => suppressed[at] === true);
    counts.events.suppressed += dropped.length;
    return without(plan, new Set(dropped.map(({ clientId, id }) => recordKey(clientId, id))));
  };

  /** Rejected records leave the plan. */
  const write = async (
    made: Plan,
    judgement: number,
    counts: GrowingCounts,
    signal: AbortSignal,
  ): Promise<Plan> => {
    let plan = made;
    let judgedBy = judgement;
    await runUpload(async (ticket) => {
      const present = gate.judgement();
      if (present !== judgedBy) plan = await judgedAgain(plan, counts);
      judgedBy = present;
      const refused = await rows.insert(plan.insert, { ticket, signal });
      for (const { place } of plan.different.filter(({ name }) => refused.has(name))) {
        counts.events.rejected += 1;
        const detail = "the warehouse refuses the row for its data";
        noteProblem(counts, { place, reason: "refused_by_warehouse", detail });
      }
      plan = without(plan, refused);
    }, signal);
    return plan;
  };

  return async (facts, range, options) => {
    const { run, coverage, stableUpTo } = facts;
    const { dryRun, signal, onEvents, onWritten } = options;
    const suppressed = dryRun ? gate.wouldSuppress : gate.suppresses;
    const counts = emptyCounts();
    // By the present suppressions.
    await gate.ticket(signal);
    const judgement = gate.judgement();
    const stored = await runs.stored(run, range, signal);
    let plans = new Map<EventType, Plan>();

    const apply = async (): Promise<void> => {
      for (const plan of plans.values()) {
        const written = dryRun ? plan : await write(plan, judgement, counts, signal);
        for (const { table } of written.insert) counts.rows.inserted[table] += 1;
        for (const { row } of written.remove) counts.rows.deleted[row.table] += 1;
        await onWritten(written);
      }
      plans = new Map();
    };

    let group: LandedEvent[] = [];
    const close = async (): Promise<void> => {
      const [first] = group;
      if (first === undefined) return;
      const { type } = first;
      const plan = plans.get(type) ?? newPlan(type);
      plans.set(type, plan);
      await judgeRecord(plan, group, stored.get(hashKey(first)) ?? [], counts, {
        suppressed,
        coverage,
        stableUpTo,
      });
      group = [];
      const bytes = [...plans.values()].reduce((sum, one) => sum + one.bytes, 0);
      if (bytes >= planBytes) await apply();
    };

    // Stored rows were read before landing, which is written first: every row has its event there.
    for await (const events of runs.landed(run, range, signal)) {
      for (const event of events) {
        const [first] = group;
        const isSame =
          first?.recordId === event.recordId &&
          first.clientId === event.clientId &&
          first.type === event.type;
        if (!isSame) await close();
        group.push(event);
      }
      onEvents(events.length);
    }
    await close();
    await apply();
    return counts;
  };
};
