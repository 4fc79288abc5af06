/**
 * The SQL for reading whole windows by date_created. A window is read in steps, each a range of dates that is
 * known beforehand: unlike a page, a step needs no collecting of keys, no sort and no count.
 *
 * Parameters: `client`; `since` and `to` (µs); for the end of a step `rows`, how many rows it may span.
 */
import { micros } from "../../session/micros-sql.ts";
import { unexpectedAnswer } from "../../session/warehouse-error.ts";
import {
  CONVERSATION,
  createdCandidates,
  handoffsOf,
  JOINED_IN_ORDER,
  withHandoffs,
} from "./conversation-sql.ts";
import { type Candidates, liveInOrder, liveRows } from "./identity-sql.ts";
import type { PageShape } from "./page-sql.ts";

/** SQL condition for dates of the range. */
export const inRange = (date: string): string =>
  `${date} >= ${micros("since")} AND ${date} < ${micros("to")}`;
const RANGE = `client_id = {client:String} AND ${inRange("date_created")}`;

/** How a step is read. */
export type LineShape = Pick<PageShape, "spread" | "severalDates" | "hiding">;

/** A list that is read in ranges of a date. */
export type RangedList = {
  /** Rows of all versions as `FROM table WHERE range`, and their sorting columns up to the date. */
  readonly rows: {
    readonly table: string;
    readonly range: string;
    readonly date: string;
    readonly columns: string;
  };
  readonly candidates: Candidates;
  /** SELECT of the public JSON of the live records of the range in order, as `record`. */
  readonly records: (shape: LineShape) => string;
};

/** A list that is read as lines. */
export type LineList = RangedList & { readonly table: "conversations" | "messages" };

/**
 * The date of an answer to `stepEnd`, µs; null when there are fewer rows.
 * @throws WarehouseError when it is none
 */
export const stepEndOfAnswer = (answer: string): number | null => {
  if (answer === "") return null;
  if (!/^\d+\n$/.test(answer)) throw unexpectedAnswer();
  return Number(answer);
};

/** SQL for the date of the row behind the first `rows` rows of all versions; no row when there are fewer. */
export function stepEnd({ rows: { table, range, date, columns } }: RangedList): string {
  return `SELECT toUnixTimestamp64Micro(${date}) FROM ${table}
    WHERE ${range}
    ORDER BY ${columns} LIMIT 1 OFFSET {rows:UInt32}`;
}

const CONVERSATIONS = createdCandidates(RANGE, inRange("date_created"));
const MESSAGES: Candidates = {
  kind: "message",
  id: "message_id",
  table: "messages",
  range: RANGE,
  dates: inRange("date_created"),
};
const BY_CREATION = { range: RANGE, date: "date_created", columns: "client_id, date_created" };

export const LINE_LISTS = {
  conversations: {
    table: "conversations",
    rows: { table: "conversations", ...BY_CREATION },
    candidates: CONVERSATIONS,
    records: (shape) => {
      const columns = "date_created, conversation_id, head, tail";
      const records = liveRows(columns, CONVERSATIONS, shape);
      const several = shape.severalDates ? CONVERSATIONS : null;
      const handoffs = handoffsOf(inRange("conversation_date_created"), several);
      return `SELECT ${CONVERSATION} AS record FROM ${withHandoffs(records, handoffs, shape)} ${JOINED_IN_ORDER}`;
    },
  },
  messages: {
    table: "messages",
    rows: { table: "messages", ...BY_CREATION },
    candidates: MESSAGES,
    records: (shape) => liveInOrder("record", MESSAGES, shape),
  },
} as const satisfies Readonly<Record<string, LineList>>;
