import type { LegacyVersion } from "../record/legacy-view.ts";
import { conversation } from "./conversation.ts";
import { endUser } from "./end-user.ts";
import { message } from "./message.ts";
import type { OwnColumn, SubjectType } from "./record-form.ts";
import type { TableColumns } from "./record-kind.ts";

/** Code for all kinds reads them here and names none. */
export const RECORD_KINDS = { conversation, message, end_user: endUser } as const;

export type RecordKind = keyof typeof RECORD_KINDS;
type KnownKind = (typeof RECORD_KINDS)[RecordKind];
export type EventType = KnownKind["type"];
export type RecordTable = KnownKind["tables"][number]["name"];
export type ListName = KnownKind["list"];
export type Topics = Readonly<Record<ListName, string>>;

/** With a date in their own table's key. */
export type DatedKind = {
  [Kind in RecordKind]: (typeof RECORD_KINDS)[Kind]["code"] extends null ? never : Kind;
}[RecordKind];

export type DatedList = (typeof RECORD_KINDS)[DatedKind]["list"];

export type RecordTableFacts = TableColumns & {
  readonly name: RecordTable;
  readonly kind: RecordKind;
  readonly type: EventType;
};

export const KIND_NAMES = Object.keys(RECORD_KINDS) as RecordKind[];
const KINDS: readonly KnownKind[] = Object.values(RECORD_KINDS);

export const DATED_KINDS = KIND_NAMES.filter((kind): kind is DatedKind => RECORD_KINDS[kind].code !== null);
export const UNDATED_KINDS = KIND_NAMES.filter((kind) => RECORD_KINDS[kind].code === null);

/** Its id is what `conversationId` of all records names. */
export const CONVERSATION_KIND = "conversation" satisfies RecordKind;

/** Their ids name persons: an erasure keeps only a hash. */
export const PERSON_KINDS = KIND_NAMES.flatMap((kind) => {
  const { idNames } = RECORD_KINDS[kind];
  return idNames === null ? [] : [{ kind, idNames }];
});

export const EVENT_TYPES = KINDS.map(({ type }) => type) as [EventType, ...EventType[]];
export const LIST_NAMES: readonly ListName[] = KINDS.map(({ list }) => list);
export const LIST_SCOPES = [...new Set(KINDS.map(({ scope }) => scope))];

type LegacyKind = Extract<KnownKind, { readonly legacy: object }>;
export type LegacyList = LegacyKind["list"];
type LegacyFields = Readonly<Record<LegacyVersion, readonly string[]>>;
export const LEGACY_FIELDS = Object.fromEntries(
  KINDS.filter((kind): kind is LegacyKind => "legacy" in kind).map(
    ({ list, legacy }): [LegacyList, LegacyFields] => [list, legacy],
  ),
) as Readonly<Record<LegacyList, LegacyFields>>;

const tablesOf = (kind: RecordKind): RecordTableFacts[] => {
  const { type, tables } = RECORD_KINDS[kind];
  return tables.map((table) => ({ ...table, kind, type }));
};

/** In order of insertion. */
export const RECORD_TABLES: readonly RecordTable[] = KIND_NAMES.flatMap(tablesOf).map(({ name }) => name);

/** Per kind the opposite order: first what makes a record readable. */
export const READABLE_FIRST: readonly RecordTableFacts[] = KIND_NAMES.flatMap((kind) =>
  tablesOf(kind).reverse(),
);

export const byRecordTable = <T>(valueOf: (table: RecordTableFacts) => T): Readonly<Record<RecordTable, T>> =>
  Object.fromEntries(READABLE_FIRST.map((table) => [table.name, valueOf(table)])) as Record<RecordTable, T>;

export const byList = <T>(valueOf: (list: ListName) => T): Readonly<Record<ListName, T>> =>
  Object.fromEntries(LIST_NAMES.map((list) => [list, valueOf(list)])) as Record<ListName, T>;

export const byDatedList = <T>(valueOf: (kind: DatedKind) => T): Readonly<Record<DatedList, T>> =>
  Object.fromEntries(DATED_KINDS.map((kind) => [RECORD_KINDS[kind].list, valueOf(kind)])) as Record<
    DatedList,
    T
  >;

export const byEventType = <T>(valueOf: (kind: RecordKind) => T): Readonly<Record<EventType, T>> =>
  Object.fromEntries(KIND_NAMES.map((kind) => [RECORD_KINDS[kind].type, valueOf(kind)])) as Record<
    EventType,
    T
  >;

export const TABLE_FACTS = byRecordTable((table) => table);
export const KIND_OF: Readonly<Record<EventType, KnownKind>> = byEventType((kind) => RECORD_KINDS[kind]);

/** In order of insertion. */
export const TABLES_OF = byEventType((kind) => tablesOf(kind).map(({ name }) => name));

/** Makes a version readable. */
export const ownTableOf = (kind: RecordKind): RecordTableFacts => {
  const table = tablesOf(kind).at(-1);
  if (table === undefined) throw new TypeError(`${kind} has no table`);
  return table;
};
export const OWN_TABLE_OF = byEventType(ownTableOf);

export const personsOf = (kind: RecordKind): readonly (readonly [SubjectType, readonly string[]])[] => {
  const { idNames, form } = RECORD_KINDS[kind];
  const columns: readonly OwnColumn<never>[] = form.columns;
  const named = [
    ...(idNames === null ? [] : [[idNames, ownTableOf(kind).id] as const]),
    ...columns.flatMap(({ name, person }) => (person === undefined ? [] : [[person, name] as const])),
  ];
  return [...Map.groupBy(named, ([subject]) => subject)].map(([subject, all]) => [
    subject,
    all.map(([, column]) => column),
  ]);
};

export const typesByTopic = (topics: Topics): ReadonlyMap<string, EventType> =>
  new Map(KINDS.map(({ list, type }) => [topics[list], type]));

export const listsByTopic = (topics: Topics): ReadonlyMap<string, ListName> =>
  new Map(KINDS.map(({ list }) => [topics[list], list]));
