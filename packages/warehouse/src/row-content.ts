import { hash } from "node:crypto";
import type {
  ConversationRecord,
  EndUserRecord,
  ExportRecord,
  MessageRecord,
  RecordTable,
  RightRow,
} from "@conversation-export/domain";

/** One thing that a row says: as SQL that gives a text or NULL, and of a right row. */
type Saying = readonly [sql: string, of: (row: RightRow) => string | null];

type Columns<R> = {
  text(column: string, of: (record: R) => string | null): Saying;
  micros(column: string, of: (record: R) => number): Saying;
  whole(column: string, of: (record: R) => boolean | number | null): Saying;
  float(column: string, of: (record: R) => number | null): Saying;
};

/** Ways to say a column of rows whose record `read` gives. */
const columnsOf = <R extends ExportRecord>(read: (row: RightRow) => R): Columns<R> => {
  return {
    text: (column, of) => [`toString(${column})`, (row) => of(read(row))],
    micros: (column, of) => [`toString(toUnixTimestamp64Micro(${column}))`, (row) => String(of(read(row)))],
    whole: (column, of) => [
      `toString(toUInt8(${column}))`,
      (row) => {
        const value = of(read(row));
        return value === null ? null : String(Number(value));
      },
    ],
    float: (column, of) => [
      `if(isNull(${column}), NULL, toString(reinterpretAsUInt64(assumeNotNull(${column}))))`,
      (row) => {
        const value = of(read(row));
        return value === null ? null : String(bitsOf(value));
      },
    ],
  };
};

const wrongType = (): never => {
  throw new TypeError("a row of another type of record");
};

const view = new DataView(new ArrayBuffer(8));
const bitsOf = (value: number): bigint => {
  view.setFloat64(0, value);
  return view.getBigUint64(0);
};

const LABEL = '"record_last_updated":"';
/** The text without the instant of upload, which stands in it as in the column beside it. */
export const withoutUpload = (column: string): string =>
  `replaceOne(${column}, concat('${LABEL}', replaceOne(toString(uploaded_at), ' ', 'T'), '+00:00"'), '${LABEL}"')`;
const textOf = ({ beforeUpload, afterUpload }: ConversationRecord | MessageRecord): string =>
  beforeUpload + afterUpload;

const conversation = columnsOf(({ record }) =>
  record.type === "conversation.exported" ? record : wrongType(),
);
const message = columnsOf(({ record }) => (record.type === "message.exported" ? record : wrongType()));
const endUser = columnsOf(({ record }) => (record.type === "end_user.exported" ? record : wrongType()));

const CONVERSATION_TEXTS: readonly Saying[] = [
  conversation.text(withoutUpload("head"), textOf),
  conversation.text("tail", ({ tail }) => tail),
];

const CONVERSATION: readonly Saying[] = [
  conversation.micros("exported_at", ({ version }) => version.exportedAt),
  conversation.micros("date_updated", ({ dateUpdated }) => dateUpdated),
  conversation.text("chatter_id", ({ columns }) => columns.chatterId),
  conversation.text("end_user_id", ({ columns }) => columns.endUserId),
  conversation.text("language", ({ columns }) => columns.language),
  conversation.text("platform", ({ columns }) => columns.platform),
  conversation.text("device", ({ columns }) => columns.device),
  conversation.text("browser", ({ columns }) => columns.browser),
  conversation.text("automated_resolution_classification", ({ columns }) => columns.resolution),
  conversation.text("generated_topic_label", ({ columns }) => columns.topicLabel),
  conversation.text("last_agent_id", ({ columns }) => columns.lastAgentId),
  conversation.whole("is_engaged", ({ columns }) => columns.isEngaged),
  conversation.whole("is_escalated", ({ columns }) => columns.isEscalated),
  conversation.whole("is_test_user", ({ columns }) => columns.isTestUser),
  conversation.float("agent_handle_time", ({ columns }) => columns.agentHandleTime),
  conversation.float("bot_handle_time", ({ columns }) => columns.botHandleTime),
  conversation.float("csat_score", ({ columns }) => columns.csatScore),
  ...CONVERSATION_TEXTS,
];

const UPDATE: readonly Saying[] = [
  conversation.micros("date_created", ({ dateCreated }) => dateCreated),
  ...CONVERSATION_TEXTS,
];

const HANDOFF: readonly Saying[] = [
  ["toString(toUnixTimestamp64Micro(date_created))", ({ entry }) => String(entry?.dateCreated)],
  ["name", ({ entry }) => entry?.name ?? ""],
  ["toString(outcome_status)", ({ entry }) => entry?.outcomeStatus ?? ""],
  ["toString(reason_code)", ({ entry }) => entry?.reasonCode ?? null],
  ["entry", ({ entry }) => entry?.entry ?? ""],
];

const reviewOf = ({ columns: { review } }: MessageRecord): number | null =>
  review !== null && review >= 0 && review <= 255 ? review : null;

const MESSAGE: readonly Saying[] = [
  message.micros("exported_at", ({ version }) => version.exportedAt),
  message.text("conversation_id", ({ conversationId }) => conversationId),
  message.text("chatter_id", ({ columns }) => columns.chatterId),
  message.text("sender", ({ columns }) => columns.sender),
  message.text("recipient", ({ columns }) => columns.recipient),
  message.text("message_type", ({ columns }) => columns.messageType),
  message.text("answer_id", ({ columns }) => columns.answerId),
  message.text("in_response_to", ({ columns }) => columns.inResponseTo),
  message.whole("link_was_clicked", ({ columns }) => columns.linkWasClicked),
  message.whole("review", reviewOf),
  message.text(withoutUpload("record"), textOf),
];

const prefixed = (text: string): string => `${Buffer.byteLength(text)}:${text}`;
const prefixedSql = (text: string): string => `concat(toString(length(${text})), ':', ${text})`;

const END_USER: readonly Saying[] = [
  endUser.micros("exported_at", ({ version }) => version.exportedAt),
  endUser.micros("date_created", ({ dateCreated }) => dateCreated),
  endUser.micros("date_updated", ({ dateUpdated }) => dateUpdated),
  endUser.text("email", ({ email }) => email),
  endUser.text(
    `arrayStringConcat(arrayMap(x -> ${prefixedSql("x")}, external_ids))`,
    ({ externalIds }: EndUserRecord) => externalIds.map(prefixed).join(""),
  ),
  endUser.text("record", ({ record }) => record),
];

const CONTENT: Readonly<Record<RecordTable, readonly Saying[]>> = {
  conversations: CONVERSATION,
  conversation_updates: UPDATE,
  handoffs: HANDOFF,
  messages: MESSAGE,
  end_users: END_USER,
};

const DIGEST_LENGTH = 32;

/** SQL of the digest of what a row says beside its key, version and upload: equal to `contentDigest`. */
export const contentDigestSql = (table: RecordTable): string => {
  const texts = CONTENT[table].map(([sql]) => `ifNull(${prefixedSql(`(${sql})`)}, '-')`);
  return `lower(hex(substring(SHA256(concat(${texts.join(", ")})), 1, ${DIGEST_LENGTH / 2})))`;
};

/** Digest of what a right row says, of each text with its length, so that no two rows say the same by chance. */
export const contentDigest = (row: RightRow): string => {
  let all = "";
  for (const [, of] of CONTENT[row.table]) {
    const text = of(row);
    all += text === null ? "-" : prefixed(text);
  }
  return hash("sha256", all, "hex").slice(0, DIGEST_LENGTH);
};
