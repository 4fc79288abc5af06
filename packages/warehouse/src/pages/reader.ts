import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { createReadChanges } from "../changes/read-changes.ts";
import { endUsers } from "./sql/end-user-sql.ts";
import { findKey, validKeys } from "./key-lookup.ts";
import { LINE_LISTS, type LineList, stepEnd, stepEndOfAnswer } from "./sql/line-sql.ts";
import type { Reader, WindowLines } from "./page.ts";
import { COUNT_HIDDEN } from "./sql/hidden-sql.ts";
import { COUNT_MOVED } from "./sql/identity-sql.ts";
import {
  IN_ORDER,
  PAGE_SETTINGS,
  PAGED_LISTS,
  type PageStatement,
  spreadSettings,
  TEXT_LINE_SETTINGS,
} from "./page-statements.ts";
import { parseEndUserHead, passLines, splitHead } from "./page-stream.ts";
import { createAskForFacts } from "./ask-facts.ts";
import { askNearFirst } from "./near-part.ts";
import { createNotedDates } from "./noted-dates.ts";
import { createParquetLists } from "../parquet/parquet-lists.ts";
import { createPageReader } from "./read-page.ts";
import type { SendStatement } from "./send-statement.ts";
import type { Session } from "../session/session.ts";
import { toWarehouseError } from "../session/warehouse-error.ts";

/** Key look-ups delay every request, so they time out early. */
const LOOKUP_TIMEOUT_MS = 5_000;
/** Large enough that the fixed cost of a query per step is negligible. */
const STEP_ROWS = 40_000;

/** Rows of all versions per record, assumed for a client without a previous page. */
const INITIAL_ROWS = { created: 2, updated: 5, ofConversation: 1.15 } as const;
/** Rows that a page looks at beyond the estimate. */
const SPARE_ROWS = { created: 10, updated: 200, ofConversation: 10 } as const;

const openEndUsers = (stream: Readable) => splitHead(stream, parseEndUserHead);

export function createReader(deps: {
  /** For pages, with the reading user. */
  readonly session: Session;
  /**
   * For key look-ups, with a user and a pool of its own: pages may use up the limits and connections of
   * theirs.
   */
  readonly lookups: Session;
  /** Timeout of key look-ups and pings. */
  readonly lookupTimeoutMs?: number;
  /** Rows of all versions in one step of `lines`, and at most in one of `parquet`. */
  readonly stepRows?: number;
}): Reader {
  const { session, stepRows = STEP_ROWS, lookupTimeoutMs = LOOKUP_TIMEOUT_MS } = deps;
  const lookups = deps.lookups.with({
    timeoutMs: lookupTimeoutMs,
    settings: { max_execution_time: Math.ceil(lookupTimeoutMs / 1000) },
  });

  let knownToBeSpread: Promise<boolean> | undefined;

  async function askWhetherSpread(): Promise<boolean> {
    try {
      const [table] = await session.rows<{ engine: string }>(
        "pages.engine",
        "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'conversations'",
      );
      if (table === undefined) knownToBeSpread = undefined;
      return table?.engine === "Distributed";
    } catch (error) {
      knownToBeSpread = undefined;
      throw error;
    }
  }

  /** Whether the tables are distributed over several servers; asked once. */
  const isSpread = (): Promise<boolean> => (knownToBeSpread ??= askWhetherSpread());

  const notedDates = createNotedDates(session);

  const send: SendStatement = async ({ name, sql, parameters, settings }, open, signal) => {
    try {
      // Each client of the interface has a quota of its own.
      const quotaKey = String(parameters["client"]);
      return await open(await session.stream(name, sql, { parameters, settings, signal, quotaKey }));
    } catch (error) {
      // Converts the reason of an aborted signal too.
      throw toWarehouseError(error);
    }
  };

  const askForFacts = createAskForFacts({ send, isSpread });

  const linesOf = (list: LineList): WindowLines => ({
    async stepEnd({ clientId, since, to, signal }) {
      const sql = `${stepEnd(list)} FORMAT TabSeparated`;
      const ask = async (before: number): Promise<number | null> => {
        const parameters = { client: clientId, since, to: before, rows: stepRows };
        return stepEndOfAnswer(
          await send({ name: "pages.step_end", sql, parameters, settings: {} }, text, signal),
        );
      };
      const end = await askNearFirst(since, to, ask, (found) => found !== null);
      // An instant with more rows than a step becomes a step of its own.
      return end === null ? to : Math.max(end, since + 1);
    },
    async read({ clientId, since, to, signal }) {
      const parameters = { client: clientId, since, to, noted: await notedDates() };
      const spread = await isSpread();
      const { several, hiding } = await askForFacts(list.candidates, parameters, signal);
      const severalDates = several > 0;
      const settings = { ...TEXT_LINE_SETTINGS, ...spreadSettings(spread, severalDates) };
      const sql = `${list.records({ spread, severalDates, hiding })} FORMAT CustomSeparated`;
      return send({ name: `lines.${list.table}`, sql, parameters, settings }, passLines, signal);
    },
  });

  const pagesOf = (list: keyof typeof PAGED_LISTS, kind: keyof typeof INITIAL_ROWS) =>
    createPageReader({
      list: PAGED_LISTS[list],
      initial: INITIAL_ROWS[kind],
      spare: SPARE_ROWS[kind],
      send,
      askForFacts,
      isSpread,
      notedDates,
    });
  const messagesByCreation = pagesOf("messagesByCreation", "created");
  const messagesOfConversation = pagesOf("messagesOfConversation", "ofConversation");

  return {
    lines: { conversations: linesOf(LINE_LISTS.conversations), messages: linesOf(LINE_LISTS.messages) },
    parquet: createParquetLists({ send, isSpread, notedDates, askForFacts, stepRows }),
    conversationsByCreation: pagesOf("conversationsByCreation", "created"),
    conversationsByUpdate: pagesOf("conversationsByUpdate", "updated"),
    messagesByCreation: (query) =>
      query.conversationId === undefined ? messagesByCreation(query) : messagesOfConversation(query),
    async endUsers({ clientId, from = "", limit, externalId, signal }) {
      const parameters = { client: clientId, from, size: limit, external_id: externalId ?? "" };
      const { hiding } = await askForFacts(null, parameters, signal);
      const sql = endUsers({ selected: externalId !== undefined, hiding });
      const settings = { ...PAGE_SETTINGS, ...IN_ORDER, ...spreadSettings(await isSpread(), false) };
      const statement: PageStatement = { name: "pages.end_users", sql, parameters, settings };
      const { head, records } = await send(statement, openEndUsers, signal);
      return { ...head, records };
    },
    changes: createReadChanges({ send, askForFacts, isSpread, notedDates }),
    findKey: (hash) => findKey(lookups, hash),
    validKeys: (most) => validKeys(lookups, most),
    ping: async () => {
      // A key and a client that nobody has: the tables of keys and clients, of what is hidden and of noted
      // dates must be readable too.
      const hidden = session
        .with({ timeoutMs: lookupTimeoutMs })
        .rows(
          "pages.may_read_hidden",
          `SELECT (${COUNT_HIDDEN}), (${COUNT_MOVED}), (SELECT count() FROM watermarks)`,
          { parameters: { client: "" } },
        );
      await Promise.all([hidden, findKey(lookups, "")]);
    },
  };
}
