import { CONVERSATION, handoffsOf, JOINED_IN_ORDER, RECORD_TEXTS, withHandoffs } from "./conversation-sql.ts";
import { liveInOrder, liveRows } from "./identity-sql.ts";
import { type List, ownCandidates } from "./list.ts";
import {
  CONVERSATION_COLUMNS,
  datesOf,
  FIRST_ROWS,
  pageRows,
  type ReadShape,
  RECORD_COLUMN,
} from "./page-sql.ts";

const CONVERSATION_CANDIDATES = ownCandidates("conversation");

function joined(columns: string, shape: ReadShape): string {
  const records = liveRows("date_created, conversation_id, head, tail", CONVERSATION_CANDIDATES, shape);
  const moved = shape.hasMoved ? CONVERSATION_CANDIDATES : null;
  const handoffs = handoffsOf(datesOf("conversation_date_created"), moved);
  return `SELECT ${columns} FROM ${withHandoffs(records, handoffs, shape)} ${JOINED_IN_ORDER}`;
}

export const CONVERSATIONS_BY_CREATION: List = {
  name: "conversations_by_creation",
  rows: {
    ...CONVERSATION_CANDIDATES,
    date: "date_created",
    columns: "client_id, date_created, conversation_id",
  },
  candidates: CONVERSATION_CANDIDATES,
  page: (shape) => {
    const columns = `r.date_created AS d, r.conversation_id AS id, ${RECORD_TEXTS}`;
    return pageRows(CONVERSATION_COLUMNS, `${joined(columns, shape)} ${FIRST_ROWS}`);
  },
  records: (shape) => joined(`${CONVERSATION} AS record`, shape),
  dates: (shape) => liveInOrder("date_created AS d", CONVERSATION_CANDIDATES, shape),
  columns: CONVERSATION_COLUMNS,
  keysPerRecord: 1,
  isGuessed: true,
};

const MESSAGE_CANDIDATES = ownCandidates("message");

const messages = (columns: string, shape: ReadShape): string =>
  liveInOrder(columns, MESSAGE_CANDIDATES, shape);

export const MESSAGES_BY_CREATION: List = {
  name: "messages_by_creation",
  rows: { ...MESSAGE_CANDIDATES, date: "date_created", columns: "client_id, date_created, message_id" },
  candidates: MESSAGE_CANDIDATES,
  page: (shape) => {
    const columns = "date_created AS d, message_id AS id, record";
    return pageRows(RECORD_COLUMN, `${messages(columns, shape)} ${FIRST_ROWS}`);
  },
  records: (shape) => messages("record", shape),
  dates: (shape) => messages("date_created AS d", shape),
  columns: RECORD_COLUMN,
  keysPerRecord: 1,
  isGuessed: true,
};
