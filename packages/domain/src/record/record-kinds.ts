import type { z } from "zod";
import { conversationSchema, endUserSchema, messageSchema } from "./schemas.ts";

/** A table that holds rows of records: the columns that name a record and date its rows. */
type TableColumns = {
  readonly name: string;
  /** The record's id. */
  readonly id: string;
  /** The date in the key of the table; null: the key has none. */
  readonly keyDate: string | null;
  /** When the record was created. */
  readonly created: string;
};

type RecordKindFacts = {
  /** `type` of its events. */
  readonly type: string;
  /** `data` of its events. */
  readonly schema: z.ZodObject;
  /** Name of its topic in the settings of the services. */
  readonly topic: string;
  /** Its tables in the order of insertion; the row of the last one makes a version readable. */
  readonly tables: readonly [...TableColumns[], TableColumns];
  /** The list that has a watermark. */
  readonly list: string;
  /** The kind of suppression that holds its id. */
  readonly suppression: string;
  /** The date by which a client's retention removes it. */
  readonly expiresBy: "dateCreated" | "dateUpdated";
};

/**
 * What is known of each kind of record. Mappings from one of these facts to another are derived from here.
 */
export const RECORD_KINDS = {
  conversation: {
    type: "conversation.exported",
    schema: conversationSchema,
    topic: "conversations",
    tables: [
      {
        name: "handoffs",
        id: "conversation_id",
        keyDate: "conversation_date_created",
        created: "conversation_date_created",
      },
      {
        name: "conversation_updates",
        id: "conversation_id",
        keyDate: "date_updated",
        created: "date_created",
      },
      { name: "conversations", id: "conversation_id", keyDate: "date_created", created: "date_created" },
    ],
    list: "conversations",
    suppression: "conversation",
    expiresBy: "dateCreated",
  },
  message: {
    type: "message.exported",
    schema: messageSchema,
    topic: "messages",
    tables: [{ name: "messages", id: "message_id", keyDate: "date_created", created: "date_created" }],
    list: "messages",
    suppression: "message",
    expiresBy: "dateCreated",
  },
  end_user: {
    type: "end_user.exported",
    schema: endUserSchema,
    topic: "endUsers",
    tables: [{ name: "end_users", id: "end_user_id", keyDate: null, created: "date_created" }],
    list: "end_users",
    suppression: "end_user",
    expiresBy: "dateUpdated",
  },
} as const satisfies Record<string, RecordKindFacts>;

export type RecordKind = keyof typeof RECORD_KINDS;
type KnownKind = (typeof RECORD_KINDS)[RecordKind];
export type EventType = KnownKind["type"];
export type RecordTable = KnownKind["tables"][number]["name"];
export type ListName = KnownKind["list"];
/** A topic for each kind, by its name in the settings. */
export type Topics = Readonly<Record<KnownKind["topic"], string>>;

/** A table of records, with the kind that it belongs to. */
export type RecordTableFacts = TableColumns & {
  readonly name: RecordTable;
  readonly kind: RecordKind;
  readonly type: EventType;
};

const KIND_NAMES = Object.keys(RECORD_KINDS) as RecordKind[];
const KINDS: readonly KnownKind[] = Object.values(RECORD_KINDS);

export const EVENT_TYPES = KINDS.map(({ type }) => type) as [EventType, ...EventType[]];
export const LIST_NAMES: readonly ListName[] = KINDS.map(({ list }) => list);

const tablesOf = (kind: RecordKind): RecordTableFacts[] => {
  const { type, tables } = RECORD_KINDS[kind];
  return tables.map((table) => ({ ...table, kind, type }));
};

/** Tables of records in the order of insertion. */
export const RECORD_TABLES: readonly RecordTable[] = KIND_NAMES.flatMap(tablesOf).map(({ name }) => name);

/** The same tables, those of each kind in the opposite order: the one that makes a record readable first. */
export const READABLE_FIRST: readonly RecordTableFacts[] = KIND_NAMES.flatMap((kind) =>
  tablesOf(kind).reverse(),
);

export const byRecordTable = <T>(valueOf: (table: RecordTableFacts) => T): Readonly<Record<RecordTable, T>> =>
  Object.fromEntries(READABLE_FIRST.map((table) => [table.name, valueOf(table)])) as Record<RecordTable, T>;

export const byEventType = <T>(valueOf: (kind: RecordKind) => T): Readonly<Record<EventType, T>> =>
  Object.fromEntries(KIND_NAMES.map((kind) => [RECORD_KINDS[kind].type, valueOf(kind)])) as Record<
    EventType,
    T
  >;

export const TABLE_FACTS = byRecordTable((table) => table);
export const KIND_OF: Readonly<Record<EventType, KnownKind>> = byEventType((kind) => RECORD_KINDS[kind]);

/** Tables of each type of event in the order of insertion. */
export const TABLES_OF = byEventType((kind) => tablesOf(kind).map(({ name }) => name));

/** The table whose row makes a version of a record readable. */
export const OWN_TABLE_OF = byEventType((kind) => {
  const table = tablesOf(kind).at(-1);
  if (table === undefined) throw new TypeError(`${kind} has no table`);
  return table;
});

/** The type of event that each topic carries, by the topic's name. */
export const typesByTopic = (topics: Topics): ReadonlyMap<string, EventType> =>
  new Map(KINDS.map(({ topic, type }) => [topics[topic], type]));

/** The list that each topic fills, by the topic's name. */
export const listsByTopic = (topics: Topics): ReadonlyMap<string, ListName> =>
  new Map(KINDS.map(({ topic, list }) => [topics[topic], list]));

export const topicsByType = (topics: Topics): Readonly<Record<EventType, string>> =>
  byEventType((kind) => topics[RECORD_KINDS[kind].topic]);
