import { isShown } from "./erased-sql.ts";
import { type Candidates, isNotStale, onceOnly } from "./identity-sql.ts";
import { type List, ownCandidates } from "./list.ts";
import { FIRST_ROWS, pageRows, type ReadShape, RECORD_COLUMN } from "./page-sql.ts";

const ALL = ownCandidates("message");
const CANDIDATES: Candidates = {
  ...ALL,
  range: `${ALL.range} AND conversation_id = {conversation:String}`,
};

// Dates prune as well; with the index, ClickHouse 25.8 FINAL reads the whole window after a late correction.
const BY_DATES = { use_skip_indexes_if_final: 0 } as const;

const ofCandidates = (column: string): string => `(SELECT ${column} FROM messages WHERE ${CANDIDATES.range})`;

// Versions may name different conversations: FINAL decides; PREWHERE on key columns keeps all.
const liveOnes = (columns: string, { hasMoved, hasErased }: ReadShape): string =>
  `SELECT ${columns} FROM messages FINAL
      PREWHERE date_created IN ${ofCandidates("date_created")}
        AND cityHash64(date_created, message_id) IN ${ofCandidates("cityHash64(date_created, message_id)")}
      WHERE ${CANDIDATES.range} AND ${isNotStale(CANDIDATES, hasMoved)} AND ${isShown(CANDIDATES.kind, hasErased, { table: CANDIDATES.table, where: CANDIDATES.range })}
      ORDER BY client_id, date_created, message_id ${onceOnly(CANDIDATES)}`;

export const MESSAGES_OF_CONVERSATION: List = {
  name: "messages_of_conversation",
  rows: {
    ...CANDIDATES,
    date: "date_created",
    columns: "client_id, conversation_id, date_created, message_id",
  },
  candidates: CANDIDATES,
  page: (shape) => {
    const columns = "date_created AS d, message_id AS id, record";
    return pageRows(RECORD_COLUMN, `${liveOnes(columns, shape)} ${FIRST_ROWS}`);
  },
  records: (shape) => liveOnes("record", shape),
  dates: (shape) => liveOnes("date_created AS d", shape),
  columns: RECORD_COLUMN,
  keysPerRecord: 1.15,
  settings: BY_DATES,
  isSorted: true,
};
