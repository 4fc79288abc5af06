/**
 * The SQL for reading whole windows by date_created. A window is read in steps, each a range of dates that is
 * known beforehand: unlike a page, a step needs no collecting of keys, no sort and no count.
 *
 * Parameters: `client`; `since` and `to` (µs); for the end of a step `rows`, how many rows it may span.
 */
import { micros } from "../session/micros-sql.ts";
import {
  CONVERSATION,
  createdCandidates,
  handoffsOf,
  JOINED_IN_ORDER,
  withHandoffs,
} from "./conversation-sql.ts";
import { type Candidates, liveInOrder, liveRows } from "./identity-sql.ts";
import type { PageShape } from "./page-sql.ts";

const rangeOf = (date: string): string => `${date} >= ${micros("since")} AND ${date} < ${micros("to")}`;
const RANGE = `client_id = {client:String} AND ${rangeOf("date_created")}`;

/** How a step is read. */
export type LineShape = Pick<PageShape, "spread" | "severalDates" | "hiding">;

/** A list that is read as lines. */
export type LineList = {
  readonly table: "conversations" | "messages";
  readonly candidates: Candidates;
  readonly lines: (shape: LineShape) => string;
};

/** SQL for the date of the row behind the first `rows` rows of all versions; no row when there are fewer. */
export function stepEnd({ table }: LineList): string {
  return `SELECT toUnixTimestamp64Micro(date_created) FROM ${table}
    WHERE ${RANGE}
    ORDER BY client_id, date_created LIMIT 1 OFFSET {rows:UInt32}`;
}

const CONVERSATIONS = createdCandidates(RANGE);
const MESSAGES: Candidates = { kind: "message", id: "message_id", table: "messages", range: RANGE };

export const LINE_LISTS = {
  conversations: {
    table: "conversations",
    candidates: CONVERSATIONS,
    lines: (shape) => {
      const columns = "date_created, conversation_id, head, tail";
      const records = liveRows(columns, CONVERSATIONS, shape);
      const several = shape.severalDates ? CONVERSATIONS : null;
      const handoffs = handoffsOf(rangeOf("conversation_date_created"), several);
      return `SELECT ${CONVERSATION} FROM ${withHandoffs(records, handoffs, shape)}
        ${JOINED_IN_ORDER} FORMAT CustomSeparated`;
    },
  },
  messages: {
    table: "messages",
    candidates: MESSAGES,
    lines: (shape) => {
      const records = liveInOrder("record", MESSAGES, shape);
      return `${records} FORMAT CustomSeparated`;
    },
  },
} as const satisfies Readonly<Record<string, LineList>>;
