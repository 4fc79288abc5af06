import {
  busPositionOf,
  correctionOf,
  type EventType,
  type ExportRecord,
  type Micros,
  processEvent,
  type RightRow,
  type StoredRow,
  versionNumber,
} from "@conversation-export/domain";
import {
  rowDigest,
  type HashedRecord,
  type LandedEvent,
  type LandingCoverage,
  recordKey,
  type WrongRow,
} from "@conversation-export/warehouse";
import { type GrowingCounts, noteProblem } from "./backfill-counts.ts";

/** Estimated. */
const KEY_BYTES = 400;

/** The place on the bus. */
const PLACE = (1n << 64n) - 1n;

const placeOf = ({ topic, partition, offset }: LandedEvent): string => `${topic}/${partition}/${offset}`;

type Difference = HashedRecord & {
  readonly name: string;
  readonly place: string;
  readonly hasWrong: boolean;
  /** A merge may drop a right row before the wrong one above it is deleted. */
  readonly isOutranked: boolean;
};

export type Plan = {
  readonly type: EventType;
  readonly insert: RightRow[];
  readonly remove: WrongRow[];
  readonly different: Difference[];
  /** Estimated. */
  bytes: number;
};

export const newPlan = (type: EventType): Plan => ({
  type,
  insert: [],
  remove: [],
  different: [],
  bytes: 0,
});

/** `events` are all of the record. */
export const judgeRecord = async (
  plan: Plan,
  events: readonly LandedEvent[],
  stored: readonly StoredRow[],
  counts: GrowingCounts,
  facts: {
    readonly suppressed: (records: readonly ExportRecord[]) => Promise<readonly boolean[]>;
    readonly coverage: LandingCoverage | null;
    /** Rows of events landed before this were stored when `stored` was read. */
    readonly stableUpTo: Micros;
  },
): Promise<void> => {
  const { suppressed, coverage, stableUpTo } = facts;
  const [first] = events;
  if (first === undefined) return;
  const { clientId, recordId: id } = first;
  const accepted: ExportRecord[] = [];
  const exports: ExportRecord[] = [];
  const untouchable = new Set<bigint>();
  const places = new Set<bigint>();
  const onTheirWay = new Set<bigint>();
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
      // The other record has events that are not here.
      counts.events.rejected += 1;
      noteProblem(counts, { place, reason: "other_record", detail: "landed under another id or client" });
      return;
    }
    accepted.push(record);
    if (event.uploadedAt >= stableUpTo) onTheirWay.add(versionNumber(record.version));
  }
  const isSuppressed = await suppressed(accepted);
  for (const [index, record] of accepted.entries()) {
    if (isSuppressed[index] === true) {
      counts.events.suppressed += 1;
      untouchable.add(versionNumber(record.version));
    } else {
      exports.push(record);
    }
  }
  counts.records.examined += 1;
  const dates = exports.length > 0 ? exports : events;
  const created = Math.min(...dates.map(({ dateCreated }) => dateCreated));
  // The row's own event must be there: its day may have been dropped since.
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
    isOnItsWay: (version) => onTheirWay.has(version),
    digestOf: rowDigest,
  });
  for (const { table } of undeletable) counts.rows.undeletable[table] += 1;
  if (insert.length === 0 && remove.length === 0) return;
  counts.records.different += 1;
  const last = events.at(-1) ?? first;
  plan.different.push({
    type: plan.type,
    hash: first.hash,
    name: recordKey(clientId, id),
    place: placeOf(last),
    hasWrong: remove.length > 0,
    isOutranked: outranked.size > 0,
  });
  plan.bytes += remove.length * KEY_BYTES;
  if (insert.length > 0) for (const { text } of events) plan.bytes += text.length;
  for (const row of insert) plan.insert.push(row);
  for (const row of remove) plan.remove.push({ clientId, id, row });
};
