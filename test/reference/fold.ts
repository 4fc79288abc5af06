import { type Delivered, type Position, positionOf, Refusal, type RejectionReason } from "./delivered.ts";
import { readEnvelope } from "./envelope.ts";
import { CONVERSATION, END_USER, type Field, MESSAGE } from "./fields.ts";
import { type Entry, type Export, readExport } from "./record.ts";
import { compareUtf8 } from "./order.ts";

export type ExpectedRecord = {
  readonly id: string;
  /** µs since 1970-01-01T00:00:00Z */
  readonly dateCreated: bigint;
  /** µs; of a message its creation */
  readonly dateUpdated: bigint;
  /** µs; version of the winning export */
  readonly exportedAt: bigint;
  /** Only of messages. */
  readonly conversationId: string | null;
  readonly json: string;
};

/** By client, then record. */
export type ExpectedRecords = ReadonlyMap<string, ReadonlyMap<string, ExpectedRecord>>;

export type Rejection = {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly reason: RejectionReason;
};

export type Folded = {
  readonly conversations: ExpectedRecords;
  readonly messages: ExpectedRecords;
  readonly endUsers: ExpectedRecords;
  readonly rejected: readonly Rejection[];
  readonly ignored: number;
};

export type Topics = { readonly conversations: string; readonly messages: string; readonly endUsers: string };

export const TOPICS: Topics = { conversations: "conversations", messages: "messages", endUsers: "end-users" };

type Version = { readonly time: bigint; readonly position: Position };
type Seen = {
  latest: Export;
  version: Version;
  readonly targets: Map<string, { entry: Entry; version: Version }>;
  /** Whatever its handoff. */
  readonly attempts: Map<string, { entry: Entry; version: Version }>;
};

/** Later export wins, then later place on the bus. */
function isAtLeast(a: Version, b: Version): boolean {
  if (a.time !== b.time) return a.time > b.time;
  if (a.position.partition !== b.position.partition) return a.position.partition > b.position.partition;
  return a.position.offset >= b.position.offset;
}

/** Handoffs rule 5: the later date, then the later export, then the later entry. */
function mergeEntry(entries: Seen["targets"], key: string, entry: Entry, version: Version): void {
  const known = entries.get(key);
  const wins =
    known === undefined ||
    entry.dateCreated > known.entry.dateCreated ||
    (entry.dateCreated === known.entry.dateCreated && isAtLeast(version, known.version));
  if (wins) entries.set(key, { entry, version });
}

function compareEntries(a: Entry, b: Entry): number {
  if (a.dateCreated !== b.dateCreated) return a.dateCreated < b.dateCreated ? -1 : 1;
  return compareUtf8(a.target.text, b.target.text) || compareUtf8(a.target.kind, b.target.kind);
}

/** Without `handoff_id` only the attempt's latest entry is shown. */
function isShown({ attempts }: Seen, entry: Entry): boolean {
  const latest = attempts.get(entry.attempt)?.entry;
  if (latest === undefined || latest === entry) return true;
  return entry.target.kind === "handoff_id" && latest.target.kind === "handoff_id";
}

function expectedOf(seen: Seen): ExpectedRecord {
  const { latest, version, targets } = seen;
  const entries = [...targets.values()]
    .map(({ entry }) => entry)
    .filter((entry) => isShown(seen, entry))
    .sort(compareEntries);
  const handoffs = `[${entries.map((entry) => entry.json).join(",")}]`;
  const members = [...latest.texts].map(
    ([name, text]) => `"${name}":${name === "handoffs" ? handoffs : text}`,
  );
  const { id, dateCreated, dateUpdated, conversationId } = latest;
  return {
    id,
    dateCreated,
    dateUpdated,
    conversationId,
    exportedAt: version.time,
    json: `{${members.join(",")}}`,
  };
}

type Shelf = {
  readonly type: string;
  readonly fields: readonly Field[];
  readonly clients: Map<string, Map<string, Seen>>;
};

function shelf(type: string, fields: readonly Field[]): Shelf {
  return { type, fields, clients: new Map() };
}

function take({ type, fields, clients }: Shelf, delivered: Delivered): void {
  const envelope = readEnvelope(delivered, type);
  const latest = readExport(envelope.data, fields, envelope.subject);
  const version = { time: envelope.time, position: positionOf(delivered) };
  const records = clients.get(envelope.client) ?? new Map<string, Seen>();
  clients.set(envelope.client, records);
  const seen = records.get(latest.id) ?? { latest, version, targets: new Map(), attempts: new Map() };
  records.set(latest.id, seen);
  if (isAtLeast(version, seen.version)) Object.assign(seen, { latest, version });
  for (const entry of latest.handoffs) {
    mergeEntry(seen.targets, JSON.stringify(entry.target), entry, version);
    mergeEntry(seen.attempts, entry.attempt, entry, version);
  }
}

function settle({ clients }: Shelf): ExpectedRecords {
  const settled = new Map<string, Map<string, ExpectedRecord>>();
  for (const [client, records] of clients) {
    settled.set(client, new Map([...records].map(([id, seen]) => [id, expectedOf(seen)])));
  }
  return settled;
}

/** Independent of order, repeats and batches. */
export function fold(events: Iterable<Delivered>, topics: Topics = TOPICS): Folded {
  const shelves: Readonly<Record<keyof Topics, Shelf>> = {
    conversations: shelf("conversation.exported", CONVERSATION),
    messages: shelf("message.exported", MESSAGE),
    endUsers: shelf("end_user.exported", END_USER),
  };
  const byTopic = new Map([
    [topics.conversations, shelves.conversations],
    [topics.messages, shelves.messages],
    [topics.endUsers, shelves.endUsers],
  ]);
  const rejected: Rejection[] = [];
  let ignored = 0;
  for (const delivered of events) {
    const { topic, partition, offset, event } = delivered;
    const target = byTopic.get(topic);
    if (target === undefined) throw new RangeError(`unknown topic ${topic}`);
    if (event.value === null) {
      ignored += 1;
      continue;
    }
    try {
      take(target, delivered);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      rejected.push({ topic, partition, offset, reason: error.reason });
    }
  }
  return {
    conversations: settle(shelves.conversations),
    messages: settle(shelves.messages),
    endUsers: settle(shelves.endUsers),
    rejected,
    ignored,
  };
}
