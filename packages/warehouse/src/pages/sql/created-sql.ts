import { byDatedList, CONVERSATION_KIND, type DatedKind, RECORD_KINDS } from "@conversation-export/domain";
import { CONVERSATION, handoffsOf, JOINED_IN_ORDER, RECORD_TEXTS, withHandoffs } from "./conversation-sql.ts";
import { type Candidates, liveInOrder, liveRows } from "./identity-sql.ts";
import { type List, ownCandidates } from "./list.ts";
import {
  CONVERSATION_COLUMNS,
  datesOf,
  FIRST_ROWS,
  pageRows,
  type ReadShape,
  RECORD_COLUMN,
} from "./page-sql.ts";

type Statements = Pick<List, "page" | "records" | "columns">;

const withoutHandoffs = (candidates: Candidates): Statements => ({
  page: (shape) => {
    const columns = `date_created AS d, ${candidates.id} AS id, record`;
    return pageRows(RECORD_COLUMN, `${liveInOrder(columns, candidates, shape)} ${FIRST_ROWS}`);
  },
  records: (shape) => liveInOrder("record", candidates, shape),
  columns: RECORD_COLUMN,
});

const joinedWithHandoffs = (candidates: Candidates): Statements => {
  const joined = (columns: string, shape: ReadShape): string => {
    const records = liveRows("date_created, conversation_id, head, tail", candidates, shape);
    const moved = shape.hasMoved ? candidates : null;
    const handoffs = handoffsOf(datesOf("conversation_date_created"), moved);
    return `SELECT ${columns} FROM ${withHandoffs(records, handoffs, shape)} ${JOINED_IN_ORDER}`;
  };
  return {
    page: (shape) => {
      const columns = `r.date_created AS d, r.conversation_id AS id, ${RECORD_TEXTS}`;
      return pageRows(CONVERSATION_COLUMNS, `${joined(columns, shape)} ${FIRST_ROWS}`);
    },
    records: (shape) => joined(`${CONVERSATION} AS record`, shape),
    columns: CONVERSATION_COLUMNS,
  };
};

export const BY_CREATION = byDatedList((kind: DatedKind): List => {
  const candidates = ownCandidates(kind);
  const statementsOf = kind === CONVERSATION_KIND ? joinedWithHandoffs : withoutHandoffs;
  return {
    name: `${RECORD_KINDS[kind].list}_by_creation`,
    rows: { ...candidates, date: "date_created", columns: `client_id, date_created, ${candidates.id}` },
    candidates,
    ...statementsOf(candidates),
    dates: (shape) => liveInOrder("date_created AS d", candidates, shape),
    keysPerRecord: 1,
    isGuessed: true,
  };
});
