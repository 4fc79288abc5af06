/** The update index names what ever had a date in the range; live rows decide. */
import { ownTableOf } from "@conversation-export/domain";
import { CONVERSATION, handoffsOf, RECORD_TEXTS, withHandoffs } from "./conversation-sql.ts";
import { isShown } from "./erased-sql.ts";
import { type Candidates, isNotStale, onceOnly } from "./identity-sql.ts";
import type { List } from "./list.ts";
import { CONVERSATION_COLUMNS, FIRST_ROWS, pageRows, rangeOf, type ReadShape } from "./page-sql.ts";

/** With any LIMIT, ClickHouse reads other columns only of the rows that it leaves. */
const TEXTS_LAST = { query_plan_max_limit_for_lazy_materialization: "0" } as const;

const CANDIDATES: Candidates = {
  kind: "conversation",
  id: "conversation_id",
  table: "conversation_updates",
  range: rangeOf("date_updated", "conversation_id"),
  dates: "true",
};

const ofCandidates = (column: string): string =>
  `(SELECT ${column} FROM conversation_updates WHERE ${CANDIDATES.range})`;

/** If each record is there under two dates. */
const ENOUGH = "2 * ({size:UInt32} + 1)";
const ANY_NUMBER = String(2 ** 32 - 1);

// PREWHERE on key columns keeps all versions for FINAL. For LIMIT see `TEXTS_LAST`.
function liveOnes(columns: string, { hasMoved, hasErased }: ReadShape, most: string): string {
  const dates = `date_created IN ${ofCandidates("date_created")}`;
  const where = `client_id = {client:String} AND ${dates}`;
  return `SELECT * FROM (SELECT ${columns} FROM conversations FINAL
      PREWHERE ${dates} AND cityHash64(date_created, conversation_id) IN ${ofCandidates("cityHash64(date_created, conversation_id)")}
      WHERE ${CANDIDATES.range} AND ${isNotStale(CANDIDATES, hasMoved)} AND ${isShown(CANDIDATES.kind, hasErased, { table: ownTableOf(CANDIDATES.kind).name, where })}
      ORDER BY date_updated, conversation_id LIMIT ${most}) ${onceOnly(CANDIDATES)}`;
}

function joined(texts: string, shape: ReadShape, most: string): string {
  const records = liveOnes("date_updated, date_created, conversation_id, head, tail", shape, most);
  const dates = `conversation_date_created IN ${ofCandidates("date_created")}`;
  const handoffs = handoffsOf(dates, shape.hasMoved ? CANDIDATES : null);
  return `SELECT r.date_updated AS d, r.conversation_id AS id, ${texts}
    FROM ${withHandoffs(records, handoffs, shape)}`;
}

export const CONVERSATIONS_BY_UPDATE: List = {
  name: "conversations_by_update",
  rows: { ...CANDIDATES, date: "date_updated", columns: "client_id, date_updated, conversation_id" },
  candidates: CANDIDATES,
  page: (shape) =>
    pageRows(CONVERSATION_COLUMNS, `${joined(RECORD_TEXTS, shape, ENOUGH)} ORDER BY d, id ${FIRST_ROWS}`),
  records: (shape) =>
    `SELECT record FROM (${joined(`${CONVERSATION} AS record`, shape, ANY_NUMBER)}) ORDER BY d, id`,
  dates: (shape) =>
    `SELECT date_updated AS d FROM (${liveOnes("date_updated, conversation_id", shape, ENOUGH)}) ORDER BY d`,
  columns: CONVERSATION_COLUMNS,
  // Others were exported again since.
  keysPerRecord: 5,
  isGuessed: true,
  settings: TEXTS_LAST,
  isSorted: true,
};
