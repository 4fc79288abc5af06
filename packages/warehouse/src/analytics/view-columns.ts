/** The columns of the views for analysts, made of the fields of public records. */
import {
  CONVERSATION_DESCRIBED,
  type DescribedField,
  END_USER_DESCRIBED,
  type FieldType,
  MESSAGE_DESCRIBED,
} from "@conversation-export/domain";

export type ViewColumn = {
  readonly name: string;
  /** Type in ClickHouse, as its table of columns shows it. */
  readonly type: string;
  /** Value, of the row `r`. */
  readonly sql: string;
  readonly comment: string;
};

/** Where a value comes from. `name`: of the column, where it differs from that of the field. */
type Source = Pick<ViewColumn, "type" | "sql"> & { readonly name?: string };
type Sources = Readonly<Record<string, Source>>;

const INSTANT = "DateTime64(6, 'UTC')";
const TYPES = {
  text: "Nullable(String)",
  number: "Nullable(Float64)",
  flag: "Nullable(Bool)",
  date: INSTANT,
  json: "Nullable(String)",
  texts: "Array(Nullable(String))",
} as const;

const typeOf = (type: FieldType): string => {
  if (type.kind !== "items" && type.kind !== "members") return TYPES[type.kind];
  const tuple = `Tuple(${type.fields.map(({ name, type: inner }) => `${name} ${typeOf(inner)}`).join(", ")})`;
  return type.kind === "items" ? `Array(${tuple})` : tuple;
};

export const sqlText = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

const stored = (type: string, column: string, name?: string): Source => ({
  type,
  sql: `r.${column}`,
  ...(name === undefined ? {} : { name }),
});
/** Tables hold an empty text for null. */
const text = (column: string): Source => ({ type: TYPES.text, sql: `nullIf(r.${column}, '')` });
const label = (column: string): Source => ({
  type: "LowCardinality(Nullable(String))",
  sql: `nullIf(r.${column}, '')`,
});

/** A text in double quotes, or what stands between two. */
const PIECE = String.raw`"(?:[^"\\]|\\.)*"|[^"]+`;
/** Numbers that may be too large for ClickHouse, which then takes nothing of their document; with what is before. */
const LARGE = String.raw`([:,\[])(-?[0-9]{19,}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|-?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]{3,})`;

/** SQL for a JSON document that ClickHouse reads: where it would not, large numbers are texts. */
const readable = (json: string): string => `if(isValidJSON(${json}), ${json}, arrayStringConcat(arrayMap(
    piece -> if(startsWith(piece, '"'), piece, replaceRegexpAll(piece, ${sqlText(LARGE)}, '\\\\1"\\\\2"')),
    extractAll(${json}, ${sqlText(PIECE)}))))`;

/** The JSON of a row by the names under which columns read it. A conversation has two pieces of it. */
export type Documents = Readonly<Record<string, string>>;
export const CONVERSATION_DOCUMENTS = {
  head_json: readable("concat(r.head, '[]}')"),
  tail_json: readable(`concat('{"handoffs":[]', r.tail)`),
} as const satisfies Documents;
export const RECORD_DOCUMENTS = { record_json: readable("r.record") } as const satisfies Documents;

/** A field of a JSON document. */
const parsed = (document: string, path: readonly string[], type: FieldType): Source => ({
  type: typeOf(type),
  sql: `JSONExtract(${document}, ${path.map(sqlText).join(", ")}, ${sqlText(typeOf(type))})`,
});

const columnOf = ({ name, description }: DescribedField, source: Source): ViewColumn => ({
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

const CONVERSATION_SOURCES: Sources = {
  _id: stored("String", "conversation_id", "conversation_id"),
  agent_handle_time: stored(TYPES.number, "agent_handle_time"),
  bot_handle_time: stored(TYPES.number, "bot_handle_time"),
  automated_resolution_classification: label("automated_resolution_classification"),
  browser: label("browser"),
  chatter_id: text("chatter_id"),
  date_created: stored(INSTANT, "date_created"),
  date_updated: stored(INSTANT, "date_updated"),
  device: label("device"),
  end_user_id: text("end_user_id"),
  generated_topic_label: text("generated_topic_label"),
  is_engaged: stored(TYPES.flag, "is_engaged"),
  is_escalated: stored(TYPES.flag, "is_escalated"),
  is_test_user: stored(TYPES.flag, "is_test_user"),
  language: label("language"),
  last_agent_id: text("last_agent_id"),
  platform: label("platform"),
  record_last_updated: stored(INSTANT, "uploaded_at"),
};

const handoffsAt = CONVERSATION_DESCRIBED.findIndex(({ name }) => name === "handoffs");
const documentAt = (index: number): keyof typeof CONVERSATION_DOCUMENTS =>
  index < handoffsAt ? "head_json" : "tail_json";

export const CONVERSATION_COLUMNS: readonly ViewColumn[] = [
  CLIENT,
  ...CONVERSATION_DESCRIBED.flatMap((field, index) =>
    index === handoffsAt
      ? []
      : [
          columnOf(
            field,
            CONVERSATION_SOURCES[field.name] ?? parsed(documentAt(index), [field.name], field.type),
          ),
        ],
  ),
  {
    name: "csat_score",
    comment: "score of csat, when it is a number",
    ...stored(TYPES.number, "csat_score"),
  },
];

const MESSAGE_SOURCES: Sources = {
  _id: stored("String", "message_id", "message_id"),
  answer_id: text("answer_id"),
  chatter_id: text("chatter_id"),
  conversation_id: stored("String", "conversation_id"),
  date_created: stored(INSTANT, "date_created"),
  link_was_clicked: stored(TYPES.flag, "link_was_clicked"),
  recipient: text("recipient"),
  record_last_updated: stored(INSTANT, "uploaded_at"),
  review: stored("Nullable(UInt8)", "review"),
  sender: text("sender"),
  in_response_to: text("in_response_to"),
};

export const MESSAGE_COLUMNS: readonly ViewColumn[] = [
  CLIENT,
  ...MESSAGE_DESCRIBED.map((field) =>
    columnOf(field, MESSAGE_SOURCES[field.name] ?? parsed("record_json", [field.name], field.type)),
  ),
  { name: "message_type", comment: "_type of message_data, such as text", ...label("message_type") },
];

const END_USER_SOURCES: Sources = {
  end_user_id: stored("String", "end_user_id"),
  created_at: stored(INSTANT, "date_created"),
  updated_at: stored(INSTANT, "date_updated"),
};

const ofProfile = (fields: readonly DescribedField[]): ViewColumn[] =>
  fields.map((field) =>
    columnOf(
      field,
      field.name === "email" ? text("email") : parsed("record_json", ["profile", field.name], field.type),
    ),
  );

export const END_USER_COLUMNS: readonly ViewColumn[] = [
  CLIENT,
  ...END_USER_DESCRIBED.flatMap((field) =>
    field.type.kind === "members"
      ? ofProfile(field.type.fields)
      : [columnOf(field, END_USER_SOURCES[field.name] ?? parsed("record_json", [field.name], field.type))],
  ),
];

const HANDOFF_SOURCES: Sources = {
  name: text("name"),
  handoff_id: { type: TYPES.text, sql: "if(r.target_kind = 'handoff_id', r.target, NULL)" },
  id: { type: "String", sql: "if(r.target_kind = 'id', r.target, JSONExtractString(r.entry, 'id'))" },
  date_created: stored(INSTANT, "date_created"),
  outcome_status: label("outcome_status"),
  reason_code: stored("LowCardinality(Nullable(String))", "reason_code"),
};

const handoffFields = ({ type }: DescribedField): readonly DescribedField[] =>
  type.kind === "items" ? type.fields : [];

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
  ...CONVERSATION_DESCRIBED.slice(handoffsAt, handoffsAt + 1)
    .flatMap(handoffFields)
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

/** Of conversations `r`, grouped by client and day. */
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
  {
    name: "csat_score_sum",
    type: "Float64",
    sql: "ifNull(sum(r.csat_score), 0)",
    comment: "Sum of these scores: divided by csat_answers, over any days, their mean",
  },
  {
    name: "bot_handle_time_sum",
    type: "Float64",
    sql: "ifNull(sum(r.bot_handle_time), 0)",
    comment: "Seconds that the AI agent took",
  },
  {
    name: "agent_handle_time_sum",
    type: "Float64",
    sql: "ifNull(sum(r.agent_handle_time), 0)",
    comment: "Seconds that human agents took",
  },
];
