import type {
  BusMessage,
  BusRange,
  DeadLetter,
  DeadLetterReader,
  RangeReader,
} from "@conversation-export/bus";
import {
  arrivalTimeOf,
  busPositionOf,
  END_OF_TIME,
  type EventType,
  type ExportRecord,
  OWN_TABLE_OF,
  readMessage,
} from "@conversation-export/domain";
import type { ReconcileResult } from "@conversation-export/queue";
import type { ReconcileStore } from "@conversation-export/warehouse";
import { isOfBatch } from "../replay/read-originals.ts";

export type HourReport = ReconcileResult["hours"][number];
export type Difference = ReconcileResult["differences"][number];
export type Fate = Exclude<keyof HourReport["clients"][number], "clientId">;

type Carried = { readonly record: ExportRecord; readonly message: BusMessage };

const BATCH = 5_000;
const SIDE_BY_SIDE = 4;
/** Beyond, no reason is looked for. */
const MAX_UNEXPLAINED = 10_000;

/** A topic created anew has other messages at the same places. */
const arrivalOf = (
  { partition, offset }: { readonly partition: number; readonly offset: number },
  time: number | null,
): string => `${partition}/${offset} ${time}`;

export const reconcileHour = async (
  deps: {
    readonly reader: Pick<RangeReader, "read">;
    readonly deadLetters: Pick<DeadLetterReader, "list">;
    readonly store: Pick<ReconcileStore, "deleted" | "lacking" | "present">;
    /** true: erased. */
    readonly suppresses: (records: readonly ExportRecord[]) => Promise<readonly boolean[]>;
    /** true: older than its client keeps. */
    readonly isExpired: (record: ExportRecord) => boolean;
    readonly maxTimeAheadMs: number;
    readonly now: () => number;
  },
  work: {
    readonly hour: string;
    readonly topic: string;
    readonly type: EventType;
    readonly ranges: readonly BusRange[];
    readonly madeAnew: number;
    readonly clientId: string | null;
    readonly signal: AbortSignal;
    readonly onRead: (messages: number) => Promise<void>;
  },
): Promise<{ readonly report: HourReport; readonly differences: readonly Difference[] }> => {
  const { reader, deadLetters, store, suppresses, isExpired } = deps;
  const { topic, type } = work;
  const failed = new AbortController();
  const signal = AbortSignal.any([work.signal, failed.signal]);
  const clients = new Map<string, Record<Fate, number>>();
  const unexplained = new Map<string, (Carried & { readonly table: string })[]>();
  const differences: Difference[] = [];
  let unexplainedCount = 0;
  let [gone, ignored, refused] = [0, 0, 0];

  const count = (clientId: string, fate: Fate): void => {
    const fates = clients.get(clientId) ?? {
      readable: 0,
      missing: 0,
      deadLetters: 0,
      suppressed: 0,
      erasedButReadable: 0,
      expired: 0,
    };
    fates[fate] += 1;
    clients.set(clientId, fates);
  };

  const differ = (
    { record, message }: Carried,
    fate: Difference["fate"],
    table: string = OWN_TABLE_OF[type].name,
  ): void => {
    count(record.clientId, fate === "missing" ? "missing" : "erasedButReadable");
    const { partition, offset } = message;
    differences.push({ fate, clientId: record.clientId, type, topic, partition, offset, table });
  };

  const placesOf = (deadLetter: DeadLetter): string[] => {
    if (deadLetter.lastOffset === null) return [arrivalOf(deadLetter.arrival, deadLetter.arrivedAt)];
    return [...unexplained]
      .filter(([, all]) => all.some(({ message }) => isOfBatch(message, deadLetter)))
      .map(([place]) => place);
  };

  const recordsOf = (batch: readonly Carried[]): ExportRecord[] => batch.map(({ record }) => record);

  const compareErased = async (batch: readonly Carried[]): Promise<void> => {
    const present = await store.present(type, recordsOf(batch), signal);
    for (const [index, one] of batch.entries()) {
      if (present[index] === true) differ(one, "erased_but_readable");
      else count(one.record.clientId, "suppressed");
    }
  };

  const compare = async (batch: readonly Carried[]): Promise<void> => {
    const lacking = await store.lacking(type, recordsOf(batch), signal);
    for (const [index, one] of batch.entries()) {
      const { clientId } = one.record;
      const table = lacking[index] ?? null;
      if (table === null) count(clientId, "readable");
      else if (unexplainedCount >= MAX_UNEXPLAINED) count(clientId, "missing");
      else {
        const place = arrivalOf(busPositionOf(one.message), arrivalTimeOf(one.message));
        unexplained.set(place, [...(unexplained.get(place) ?? []), { ...one, table }]);
        unexplainedCount += 1;
      }
    }
  };

  const compareMessages = async (messages: readonly BusMessage[]): Promise<void> => {
    const carried: Carried[] = [];
    for (const message of messages) {
      const outcome = readMessage(message, type, { maxTimeAheadMs: deps.maxTimeAheadMs, now: deps.now() });
      if (outcome.kind === "rejected") refused += 1;
      else if (outcome.kind === "ignored") ignored += 1;
      else if (work.clientId === null || outcome.record.clientId === work.clientId) {
        carried.push({ record: outcome.record, message });
      }
    }
    // First, so that their ids are not looked up.
    const suppressed = await suppresses(carried.map(({ record }) => record));
    const batch: Carried[] = [];
    const erased: Carried[] = [];
    for (const [index, one] of carried.entries()) {
      if (suppressed[index] === true) erased.push(one);
      else if (isExpired(one.record)) count(one.record.clientId, "expired");
      else batch.push(one);
    }
    await compare(batch);
    await compareErased(erased);
  };

  const compareRange = async (range: BusRange): Promise<void> => {
    const onLost = (lost: BusRange): void => {
      gone += lost.to - lost.from;
    };
    for await (const messages of reader.read({ ...range, signal, onLost })) {
      for (let at = 0; at < messages.length; at += BATCH) {
        signal.throwIfAborted();
        await compareMessages(messages.slice(at, at + BATCH));
      }
      await work.onRead(messages.length);
    }
  };

  const waiting = [...work.ranges];
  const compareWaiting = async (): Promise<void> => {
    try {
      for (let range = waiting.shift(); range !== undefined; range = waiting.shift())
        await compareRange(range);
    } catch (error) {
      failed.abort(error);
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, compareWaiting));
  failed.signal.throwIfAborted();

  if (unexplained.size > 0) {
    for await (const deadLetter of deadLetters.list(topic, {}, signal)) {
      for (const place of placesOf(deadLetter)) {
        for (const { record } of unexplained.get(place) ?? []) count(record.clientId, "deadLetters");
        unexplained.delete(place);
      }
      if (unexplained.size === 0) break;
    }
  }
  const left = [...unexplained.values()].flat();
  const since = Math.min(...left.map(({ message }) => message.timestamp * 1_000), END_OF_TIME);
  const deleted = await store.deleted(type, recordsOf(left), Math.max(since, 0), signal);
  for (const [index, one] of left.entries()) {
    const { record, message, table } = one;
    const { deletedAt, dateCreated } = deleted[index] ?? { deletedAt: 0, dateCreated: record.dateCreated };
    // Retention erases a record under all its dates when the live one has expired.
    if (deletedAt > message.timestamp * 1_000 && isExpired({ ...record, dateCreated }))
      count(record.clientId, "expired");
    else differ(one, "missing", table);
  }

  const byClient = [...clients]
    .map(([clientId, fates]) => ({ clientId, ...fates }))
    .sort((one, other) => (one.clientId < other.clientId ? -1 : 1));
  const { hour, madeAnew } = work;
  return { report: { hour, topic, gone, ignored, refused, madeAnew, clients: byClient }, differences };
};
