import {
  type Column,
  columnsOf,
  type ColumnType,
  type OwnColumn,
  ownTableOf,
  RECORD_KINDS,
  type RecordKind,
} from "@conversation-export/domain";
import { sqlText } from "../session/sql-text.ts";

export type ViewColumn = {
  readonly name: string;
  /** As system.columns shows it. */
  readonly type: string;
  readonly sql: string;
  readonly comment: string;
};

/** `name`: if it differs from the field's. */
type Source = Pick<ViewColumn, "type" | "sql"> & { readonly name?: string };
type Sources = Readonly<Record<string, Source | undefined>>;

const INSTANT = "DateTime64(6, 'UTC')";
const TYPES = {
  text: "Nullable(String)",
  number: "Nullable(Float64)",
  integer: "Nullable(Float64)",
  flag: "Nullable(Bool)",
  instant: INSTANT,
  json: "Nullable(String)",
} as const;

const typeOf = (type: ColumnType): string => {
  if (typeof type === "string") return TYPES[type];
  if ("list" in type) return `Array(${typeOf(type.list)})`;
  return `Tuple(${type.members.map(({ name, type: inner }) => `${name} ${typeOf(inner)}`).join(", ")})`;
};

const membersOf = (type: ColumnType): readonly Column[] =>
  typeof type !== "string" && "members" in type ? type.members : [];

const stored = (type: string, column: string, name?: string): Source => ({
  type,
  sql: `r.${column}`,
  ...(name === undefined ? {} : { name }),
});
/** Empty text stands for null in tables. */
const text = (column: string): Source => ({ type: TYPES.text, sql: `nullIf(r.${column}, '')` });
const label = (column: string): Source => ({
  type: "LowCardinality(Nullable(String))",
  sql: `nullIf(r.${column}, '')`,
});

const PIECE = String.raw`"(?:[^"\\]|\\.)*"|[^"]+`;
/** With a larger number ClickHouse may read nothing of the document. */
const LARGE = String.raw`([:,\[])(-?[0-9]{19,}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|-?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]{3,})`;

/** Large numbers become texts where needed. */
const readable = (json: string): string => `if(isValidJSON(${json}), ${json}, arrayStringConcat(arrayMap(
    piece -> if(startsWith(piece, '"'), piece, replaceRegexpAll(piece, ${sqlText(LARGE)}, '\\\\1"\\\\2"')),
    extractAll(${json}, ${sqlText(PIECE)}))))`;

export type Documents = Readonly<Record<string, string>>;
const HEAD_AND_TAIL: Documents = {
  head_json: readable("concat(r.head, '[]}')"),
  tail_json: readable(`concat('{"handoffs":[]', r.tail)`),
};
const RECORD: Documents = { record_json: readable("r.record") };

export const documentsOf = (kind: RecordKind): Documents =>
  RECORD_KINDS[kind].texts.length > 1 ? HEAD_AND_TAIL : RECORD;

const parsed = (document: string, path: readonly string[], type: ColumnType): Source => ({
  type: typeOf(type),
  sql: `JSONExtract(${document}, ${path.map(sqlText).join(", ")}, ${sqlText(typeOf(type))})`,
});

const columnOf = ({ name, description }: Column, source: Source): ViewColumn => ({
  name: source.name ?? name,
  type: source.type,
  sql: source.sql,
  comment: description,
});

const CLIENT: ViewColumn = {
  name: "client_id",
  comment: "The client whose record it is",
  ...stored("LowCardinality(String)", "client_id"),
};

const sourceOf = ({ name, type }: OwnColumn<never>): Source | undefined => {
  switch (type) {
    case "id":
      return stored("String", name);
    case "text":
      return text(name);
    case "label":
      return label(name);
    case "flag":
    case "number":
      return stored(TYPES[type], name);
    case "byte":
      return stored("Nullable(UInt8)", name);
    case "texts":
      return undefined;
  }
};

const HANDOFFS = "handoffs";

/** Fields, flattened, then columns that are no fields. */
export const columnsOfKind = (kind: RecordKind): readonly ViewColumn[] => {
  const { form, public: schema, texts } = RECORD_KINDS[kind];
  const { id } = ownTableOf(kind);
  const own: readonly OwnColumn<never>[] = form.columns;
  const sources: Sources = {
    ...Object.fromEntries(own.map((column) => [column.name, sourceOf(column)])),
    [form.id.name]: stored("String", id, id),
    [form.created.name]: stored(INSTANT, "date_created"),
    ...(form.updated && { [form.updated.name]: stored(INSTANT, "date_updated") }),
    record_last_updated: stored(INSTANT, "uploaded_at"),
  };
  const fields = columnsOf(schema);
  const cut = fields.findIndex(({ name }) => name === HANDOFFS);
  const valueOf = (field: Column, index: number, path: readonly string[]): ViewColumn => {
    const inPieces = index < cut ? "head_json" : "tail_json";
    const document = texts.length > 1 ? inPieces : "record_json";
    return columnOf(field, sources[field.name] ?? parsed(document, [...path, field.name], field.type));
  };
  return [
    CLIENT,
    ...fields.flatMap((field, index) => {
      if (field.name === HANDOFFS) return [];
      const members = membersOf(field.type);
      if (members.length === 0) return [valueOf(field, index, [])];
      return members.map((inner) => valueOf(inner, index, [field.name]));
    }),
    ...own.flatMap((column) => {
      const source = sourceOf(column);
      const { name, comment } = column;
      return source === undefined || comment === undefined ? [] : [{ ...source, name, comment }];
    }),
  ];
};

const HANDOFF_SOURCES: Sources = {
  name: text("name"),
  handoff_id: { type: TYPES.text, sql: "if(r.target_kind = 'handoff_id', r.target, NULL)" },
  id: { type: "String", sql: "if(r.target_kind = 'id', r.target, JSONExtractString(r.entry, 'id'))" },
  date_created: stored(INSTANT, "date_created"),
  outcome_status: label("outcome_status"),
  reason_code: stored("LowCardinality(Nullable(String))", "reason_code"),
};

const itemFields = ({ type }: Column): readonly Column[] =>
  typeof type !== "string" && "list" in type ? membersOf(type.list) : [];

export const HANDOFF_COLUMNS: readonly ViewColumn[] = [
  CLIENT,
  {
    name: "conversation_id",
    comment: "ID of the conversation that was handed over",
    ...stored("String", "conversation_id"),
  },
  {
    name: "conversation_date_created",
    comment: "When the conversation began, as the export said that the attempt comes from",
    ...stored(INSTANT, "conversation_date_created"),
  },
  ...columnsOf(RECORD_KINDS.conversation.public)
    .filter(({ name }) => name === HANDOFFS)
    .flatMap(itemFields)
    .map((field) =>
      columnOf(field, HANDOFF_SOURCES[field.name] ?? parsed("r.entry", [field.name], field.type)),
    ),
];

const count = (name: string, condition: string, comment: string): ViewColumn => ({
  name,
  type: "UInt64",
  sql: `countIf(${condition})`,
  comment,
});

const sum = (column: string, comment: string): ViewColumn => ({
  name: `${column}_sum`,
  type: "Float64",
  sql: `ifNull(sum(r.${column}), 0)`,
  comment,
});

export const DAILY_COLUMNS: readonly ViewColumn[] = [
  CLIENT,
  { name: "day", type: "Date", sql: "toDate(r.date_created)", comment: "Day in UTC on which they began" },
  count("conversations", "true", "Conversations that began, without those of test users"),
  count("engaged", "r.is_engaged", "Of these, in which the chatter talked with the bot"),
  count(
    "contained",
    "r.is_engaged AND NOT ifNull(r.is_escalated, false)",
    "Engaged ones that were not escalated to a human agent",
  ),
  count("escalated", "r.is_escalated", "Those that were escalated to a human agent"),
  count("resolved", "r.automated_resolution_classification = 'Resolved'", "Classified as Resolved"),
  count(
    "classified",
    "isNotNull(r.automated_resolution_classification)",
    "Classified, as Resolved or otherwise",
  ),
  count("csat_answers", "isNotNull(r.csat_score)", "Those with a score in csat"),
  sum("csat_score", "Sum of these scores: divided by csat_answers, over any days, their mean"),
  sum("bot_handle_time", "Seconds that the AI agent took"),
  sum("agent_handle_time", "Seconds that human agents took"),
];
