import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { RECORD_COLUMNS, type RecordKind } from "@conversation-export/domain";
import { changeCandidates, changeOrder, changesInRange } from "../changes/changes-sql.ts";
import type { AskForFacts } from "../pages/ask-facts.ts";
import { MESSAGES_OF_CONVERSATION } from "../pages/sql/conversation-messages-sql.ts";
import { END_USER_STEP, endUsersInRange } from "../pages/sql/end-user-sql.ts";
import type { Candidates } from "../pages/sql/identity-sql.ts";
import { askNearFirst } from "../pages/near-part.ts";
import { LINE_LISTS, type RangedList, stepEnd, stepEndOfAnswer } from "../pages/sql/line-sql.ts";
import type { OpenParquet, PagePosition, ParquetLists } from "../pages/page.ts";
import { boundOf } from "../pages/sql/page-sql.ts";
import { PARQUET_SETTINGS, type Parameters, spreadSettings, TEXTS_LAST } from "../pages/page-statements.ts";
import { passBytes } from "../pages/page-stream.ts";
import { boundOfAnswer } from "../pages/read-page.ts";
import type { SendStatement } from "../pages/send-statement.ts";
import { CONVERSATIONS_BY_UPDATE } from "../pages/sql/updated-sql.ts";
import type { StatementName } from "../session/session.ts";
import { WarehouseError } from "../session/warehouse-error.ts";
import { DATED_KINDS } from "../tables/record-dates.ts";
import { typedColumns, UNREADABLE } from "./column-sql.ts";

/** Records that have to be sorted or joined are held in memory, all of a step. */
const SORTED_ROWS = 10_000;
/** The last bytes of a whole file. */
const MARK = Buffer.from("PAR1");

/** Each list as Parquet; a step is one statement. */
export const createParquetLists = (deps: {
  readonly send: SendStatement;
  readonly isSpread: () => Promise<boolean>;
  readonly notedDates: () => Promise<number>;
  readonly askForFacts: AskForFacts;
  /** Rows of all versions in a step, at most. */
  readonly stepRows: number;
}): ParquetLists => {
  const { send, isSpread, notedDates, askForFacts, stepRows } = deps;
  const sortedRows = Math.min(stepRows, SORTED_ROWS);

  const ask = (
    name: StatementName,
    sql: string,
    parameters: Parameters,
    signal: AbortSignal,
  ): Promise<string> =>
    send({ name, sql: `${sql} FORMAT TabSeparatedRaw`, parameters, settings: {} }, text, signal);

  type Statement = {
    readonly name: StatementName;
    readonly kind: RecordKind;
    readonly candidates: Candidates | null;
    readonly records: (shape: { spread: boolean; severalDates: boolean; hiding: boolean }) => string;
    readonly settings?: typeof TEXTS_LAST;
    readonly withDeletions?: boolean;
    readonly parameters: Parameters;
  };
  const open = async (statement: Statement, signal: AbortSignal): Promise<Readable> => {
    const { name, kind, candidates, records, withDeletions = false } = statement;
    const spread = await isSpread();
    const parameters = { ...statement.parameters, noted: await notedDates() };
    const { several, hiding } = await askForFacts(candidates, parameters, signal);
    const severalDates = several > 0;
    const found = records({ spread, severalDates, hiding });
    const sql = `${typedColumns(RECORD_COLUMNS[kind], found, withDeletions)} FORMAT Parquet`;
    const settings = {
      ...PARQUET_SETTINGS,
      ...statement.settings,
      ...spreadSettings(spread, severalDates),
    };
    return send({ name, sql, parameters, settings }, (answer) => passBytes(answer, MARK), signal).catch(
      (error: unknown) => {
        throw error instanceof WarehouseError && error.causeName === UNREADABLE
          ? new WarehouseError("warehouse_query_failed", "RECORD_UNREADABLE", false, error)
          : error;
      },
    );
  };

  type Window = { readonly clientId: string; readonly since: number; readonly to: number };
  /** A window of dates, in ranges. */
  const window = (
    list: RangedList,
    of: Pick<Statement, "name" | "kind" | "settings"> & { readonly rows: number },
    { clientId, since, to }: Window,
    own: Parameters = {},
  ): OpenParquet => {
    const { candidates, records } = list;
    const from =
      (start: number): OpenParquet =>
      async (signal) => {
        const range = { ...own, client: clientId, since: start, to };
        const stepped = await askNearFirst(
          start,
          to,
          async (before) =>
            stepEndOfAnswer(
              await ask("parquet.step_end", stepEnd(list), { ...range, to: before, rows: of.rows }, signal),
            ),
          (found) => found !== null,
        );
        // An instant with more rows than a step becomes a step of its own.
        const end = stepped === null ? to : Math.max(stepped, start + 1);
        const bytes = await open({ ...of, candidates, records, parameters: { ...range, to: end } }, signal);
        return { bytes, next: end < to ? from(end) : null };
      };
    return from(since);
  };

  const conversationsByCreation = {
    name: "parquet.conversations",
    kind: "conversation",
    rows: stepRows,
  } as const;
  const conversationsByUpdate = {
    name: "parquet.conversations_by_update",
    kind: "conversation",
    rows: sortedRows,
    settings: TEXTS_LAST,
  } as const;
  const messagesByCreation = { name: "parquet.messages", kind: "message", rows: stepRows } as const;
  const messagesOfConversation = {
    name: "parquet.messages_of_conversation",
    kind: "message",
    rows: sortedRows,
  } as const;

  return {
    conversations: ({ filter, ...query }) =>
      filter === "created"
        ? window(LINE_LISTS.conversations, conversationsByCreation, query)
        : window(CONVERSATIONS_BY_UPDATE, conversationsByUpdate, query),
    messages: ({ conversationId: conversation, ...query }) =>
      conversation === undefined
        ? window(LINE_LISTS.messages, messagesByCreation, query)
        : window(MESSAGES_OF_CONVERSATION, messagesOfConversation, query, { conversation }),
    endUsers: ({ clientId, from: first = "", externalId }) => {
      const selected = externalId !== undefined;
      const from =
        (start: string): OpenParquet =>
        async (signal) => {
          const range = { client: clientId, from: start, external_id: externalId ?? "" };
          const answer = await ask(
            "parquet.end_users_end",
            END_USER_STEP,
            { ...range, rows: stepRows },
            signal,
          );
          const bounded = answer !== "";
          // The least id behind one with more versions than a step.
          const behind = answer === `${start}\n` ? `${start}\0` : answer.slice(0, -1);
          const bytes = await open(
            {
              name: "parquet.end_users",
              kind: "end_user",
              candidates: null,
              records: ({ hiding }) => endUsersInRange({ selected, hiding, bounded }),
              parameters: { ...range, behind },
            },
            signal,
          );
          return { bytes, next: bounded ? from(behind) : null };
        };
      return from(first);
    },
    changes: ({ clientId, kind, after, settled }) => {
      const dated = DATED_KINDS.find((one) => one === kind);
      const from =
        ({ date, id }: PagePosition): OpenParquet =>
        async (signal) => {
          const range = { client: clientId, to: settled, after_date: date, after_id: id };
          const asked = { ...range, rows: sortedRows };
          const bound = boundOfAnswer(
            await ask("parquet.changes_bound", boundOf(changeOrder(kind)), asked, signal),
          );
          const atEnd = bound.rows < sortedRows;
          const bytes = await open(
            {
              name: "parquet.changes",
              kind,
              candidates: dated === undefined ? null : changeCandidates(dated),
              records: (shape) => changesInRange(kind, shape),
              withDeletions: true,
              parameters: { ...range, bound: atEnd ? settled - 1 : bound.date },
            },
            signal,
          );
          // The range holds all entries of its last instant.
          return { bytes, next: atEnd ? null : from({ date: bound.date + 1, id: "" }) };
        };
      return from(after);
    },
  };
};
