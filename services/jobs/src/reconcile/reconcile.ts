import { setTimeout as sleep } from "node:timers/promises";
import type { BusRange, GroupProgress, DeadLetterReader, RangeReader } from "@conversation-export/bus";
import { type EventType, expiryDateOf, type ExportRecord } from "@conversation-export/domain";
import {
  type JobHandler,
  type ReconcileData,
  reconcileJob,
  type ReconcileResult,
} from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type {
  ClientStore,
  ComparedOffset,
  ReconciledUntil,
  ReconcileStore,
} from "@conversation-export/warehouse";
import { agreedNow } from "../process/agreed-now.ts";
import { type HourReport, reconcileHour } from "./reconcile-hour.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const MAX_HOURS = 31 * 24;
const MAX_NAMED = 100;
/** An erasure may be under way. */
const ERASURE_ATTEMPTS = 10;
const MAX_IN_REASON = 5;
/** Beyond, only clients with a difference are kept. */
const MAX_ENTRIES = 2_000;
const MAX_BEHIND_HOURS = 7 * 24;

export type ReconcileState = {
  readonly from: number;
  readonly to: number;
  readonly firstStarts: ReconciledUntil["offsets"] | null;
  readonly next: number;
  /** null: at the first message of its time. */
  readonly starts: ReconciledUntil["offsets"] | null;
  readonly report: Omit<ReconcileResult, "from" | "to">;
};

const NOTHING: ReconcileState["report"] = { hours: [], missing: 0, erasedButReadable: 0, differences: [] };

const floorHour = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS;
const isoOf = (ms: number): string => new Date(ms).toISOString();

export const createReconcile = (deps: {
  readonly topics: ReadonlyMap<string, EventType>;
  readonly reader: Pick<RangeReader, "bounds" | "offsetsAt" | "read" | "topicId">;
  readonly deadLetters: Pick<DeadLetterReader, "list">;
  readonly progress: Pick<GroupProgress, "fetch">;
  readonly store: ReconcileStore;
  readonly clients: Pick<ClientStore, "listClients">;
  /** true: erased. */
  readonly suppresses: (records: readonly ExportRecord[]) => Promise<readonly boolean[]>;
  /** An event may claim to be this much later than its arrival. */
  readonly maxTimeAheadMs: number;
  /** Then a later attempt goes on. */
  readonly patienceMs: number;
  readonly now: () => number;
  readonly onCompared: (report: HourReport) => void;
}): JobHandler<ReconcileData, ReconcileResult, ReconcileState> => {
  const { topics, reader, progress, store, now } = deps;

  const begin = async ({ from, to, clientId }: ReconcileData, at: number): Promise<ReconcileState> => {
    const report = NOTHING;
    const end = to === null ? floorHour(at) : Math.ceil(Date.parse(to) / HOUR_MS) * HOUR_MS;
    if (from === null && to === null && clientId === null) {
      const last = await store.loadUntil();
      // Clocks that were ahead have saved it.
      const isAhead = last !== null && last.until > end;
      const start = Math.max(
        last === null || isAhead ? end - HOUR_MS : last.until,
        end - MAX_BEHIND_HOURS * HOUR_MS,
      );
      const starts = last !== null && (isAhead || last.until === start) ? last.offsets : null;
      return { from: start, to: end, firstStarts: starts, next: start, starts, report };
    }
    const start = from === null ? end - HOUR_MS : floorHour(Date.parse(from));
    if (start >= end) {
      const over = isoOf(floorHour(at));
      throw new ServiceError("no_hour_over", `the window has no hour, the last one was over at ${over}`);
    }
    if (end - start > MAX_HOURS * HOUR_MS) {
      throw new ServiceError("reconcile_window", `the window must have at most ${MAX_HOURS} hours`);
    }
    return { from: start, to: end, firstStarts: null, next: start, starts: null, report };
  };

  const settled = async (topic: string, ranges: readonly BusRange[], signal: AbortSignal): Promise<void> => {
    const deadline = performance.now() + deps.patienceMs;
    for (;;) {
      const committed = new Map(
        (await progress.fetch(topic)).partitions.map((entry) => [entry.partition, entry.committed ?? 0]),
      );
      if (ranges.every(({ partition, from, to }) => from >= to || (committed.get(partition) ?? 0) >= to)) {
        return;
      }
      if (performance.now() >= deadline) {
        throw new ServiceError(
          "reconcile_behind",
          `ingest has not read all of ${topic} up to this hour yet`,
          {
            retryable: true,
          },
        );
      }
      await sleep(500, undefined, { signal });
    }
  };

  const expiryOf = async (at: number): Promise<(record: ExportRecord) => boolean> => {
    const clients = await deps.clients.listClients();
    const cutoffs = new Map(
      clients.flatMap(({ clientId, retentionDays }) =>
        retentionDays === null ? [] : [[clientId, (at - retentionDays * DAY_MS) * 1000] as const],
      ),
    );
    return (record) => {
      return expiryDateOf(record) < (cutoffs.get(record.clientId) ?? Number.NEGATIVE_INFINITY);
    };
  };

  return {
    type: reconcileJob,
    run: async (context) => {
      const { data, signal, log } = context;
      const at = await agreedNow({ now, serverTime: store.serverTime });
      let state = context.state ?? (await begin(data, at));
      const byClock = data.from === null && data.to === null && data.clientId === null;
      const total = (state.to - state.from) / HOUR_MS;
      const isExpired = await expiryOf(at);

      for (let hour = state.next; hour < state.to; hour += HOUR_MS) {
        let report = state.report;
        const offsets: ComparedOffset[] = [];
        const note = isoOf(hour);
        for (const [topic, type] of topics) {
          const { ranges, madeAnew } = await rangesOf(reader, topic, hour, state.starts);
          if (madeAnew.length > 0) {
            const partitions = madeAnew.join(", ");
            log.warn({ topic, partitions }, "the topic was created anew: it is compared from its start");
          }
          await settled(topic, ranges, signal);
          const where = { hour: note, topic, type, ranges, madeAnew: madeAnew.length };
          const work = { ...where, clientId: data.clientId, signal };
          const onRead = (): Promise<void> =>
            context.progress({ done: (hour - state.from) / HOUR_MS, total, unit: "hours", note });
          const compared = await reconcileHour({ ...deps, isExpired }, { ...work, onRead });
          deps.onCompared(compared.report);
          for (const one of compared.differences.slice(0, MAX_NAMED))
            log.error(one, "a difference to the bus");
          report = withHour(report, compared);
          for (const { topicId = null, partition, to } of ranges)
            offsets.push({ topic, topicId, partition, offset: to });
        }
        const until = hour + HOUR_MS;
        state = { ...state, report, next: until, starts: offsets };
        await context.save(state);
        if (byClock) {
          const saved = (await store.loadUntil())?.until ?? 0;
          if (saved < until || saved > now()) await store.saveUntil({ until, offsets });
        }
      }
      await context.progress({ done: total, total, unit: "hours" });
      const result = { from: isoOf(state.from), to: isoOf(state.to), ...state.report };
      if (result.missing === 0 && result.erasedButReadable === 0) return result;
      // The next attempt compares the same hours anew.
      await context.save({ ...state, next: state.from, starts: state.firstStarts, report: NOTHING });
      throw failureOf(result, context.attempt);
    },
  };
};

/** `madeAnew`: another topic id, or fewer messages than were compared. */
const rangesOf = async (
  reader: Pick<RangeReader, "bounds" | "offsetsAt" | "topicId">,
  topic: string,
  hour: number,
  behindLast: ReconcileState["starts"],
): Promise<{ ranges: BusRange[]; madeAnew: number[] }> => {
  const topicId = await reader.topicId(topic);
  const starts = new Map(
    (await reader.offsetsAt(topic, hour)).map(({ partition, offset }) => [partition, offset]),
  );
  const compared = (behindLast ?? []).filter((one) => one.topic === topic);
  const hasOtherId = compared.some(
    (one) => one.topicId !== null && topicId !== null && one.topicId !== topicId,
  );
  const madeAnew: number[] = [];
  // The last end, so that late messages with older times are compared too.
  for (const { partition, start, end } of compared.length === 0 ? [] : await reader.bounds(topic)) {
    const last = compared.find((one) => one.partition === partition)?.offset;
    const isAnew = hasOtherId || (last !== undefined && last > end);
    starts.set(partition, isAnew ? start : (last ?? start));
    if (isAnew) madeAnew.push(partition);
  }
  const ends = await reader.offsetsAt(topic, hour + HOUR_MS);
  const ranges = ends.map(({ partition, offset }) => {
    const from = starts.get(partition) ?? 0;
    // Producers' times may go back.
    return { topic, topicId, partition, from, to: Math.max(from, offset) };
  });
  return { ranges, madeAnew };
};

const withHour = (
  report: ReconcileState["report"],
  { report: hour, differences }: Awaited<ReturnType<typeof reconcileHour>>,
): ReconcileState["report"] => {
  const entries = report.hours.reduce((sum, { clients }) => sum + clients.length, 0);
  const clients =
    entries + hour.clients.length <= MAX_ENTRIES
      ? hour.clients
      : hour.clients.filter((one) => one.missing + one.erasedButReadable > 0).slice(0, MAX_NAMED);
  return {
    hours: [...report.hours, { ...hour, clients }],
    missing: report.missing + hour.clients.reduce((sum, one) => sum + one.missing, 0),
    erasedButReadable:
      report.erasedButReadable + hour.clients.reduce((sum, one) => sum + one.erasedButReadable, 0),
    differences: [...report.differences, ...differences].slice(0, MAX_NAMED),
  };
};

/** Only places: the reason is kept longer than records may be. */
const failureOf = (result: ReconcileResult, attempt: number): ServiceError => {
  const named = (fate: ReconcileResult["differences"][number]["fate"]): string =>
    result.differences
      .filter((one) => one.fate === fate)
      .slice(0, MAX_IN_REASON)
      .map(
        (one) =>
          `${one.topic}/${one.partition}/${one.offset} (${one.clientId}${one.fate === "missing" ? `, ${one.table}` : ""})`,
      )
      .join(", ");
  const window = `of ${result.from} to ${result.to}`;
  const erased = `${result.erasedButReadable} exports ${window} are of erased records that are readable, such as ${named("erased_but_readable")}`;
  if (result.missing === 0) {
    return new ServiceError("erased_but_readable", erased, { retryable: attempt < ERASURE_ATTEMPTS });
  }
  const missing = `${result.missing} exports ${window} are not readable, such as ${named("missing")}`;
  return new ServiceError(
    "records_missing",
    result.erasedButReadable === 0 ? missing : `${missing}; ${erased}`,
  );
};
