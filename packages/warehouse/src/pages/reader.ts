import { createReadChanges } from "../changes/read-changes.ts";
import type { Session } from "../session/session.ts";
import { toWarehouseError } from "../session/warehouse-error.ts";
import { createAskForConditions } from "./ask-conditions.ts";
import { createFindEnd } from "./find-end.ts";
import { findKey, validKeys } from "./key-lookup.ts";
import { createListSteps, LINES, PARQUET } from "./list-steps.ts";
import { createDatesKnown } from "./known-dates.ts";
import type { PagesByCreation, Reader } from "./page.ts";
import { pageSettings, type PageStatement, type SendStatement, shardedSettings } from "./page-statements.ts";
import { openPage } from "./page-stream.ts";
import { createPageReader } from "./read-page.ts";
import { MESSAGES_OF_CONVERSATION } from "./sql/conversation-messages-sql.ts";
import { BY_CREATION } from "./sql/created-sql.ts";
import { endUsers } from "./sql/end-user-sql.ts";
import { COUNT_ERASED } from "./sql/erased-sql.ts";
import { COUNT_MOVED } from "./sql/identity-sql.ts";
import type { List } from "./sql/list.ts";
import { RECORD_COLUMN } from "./sql/page-sql.ts";
import { CONVERSATIONS_BY_UPDATE } from "./sql/updated-sql.ts";

/** Key look-ups delay every request. */
const LOOKUP_TIMEOUT_MS = 5_000;
/** With fewer, the fixed cost of each step's query counts. */
const STEP_KEYS = 40_000;

export function createReader(deps: {
  readonly session: Session;
  /** Its own user and pool: pages may use up the limits and connections of theirs. */
  readonly lookups: Session;
  readonly lookupTimeoutMs?: number;
  readonly stepKeys?: number;
}): Reader {
  const { session, stepKeys = STEP_KEYS, lookupTimeoutMs = LOOKUP_TIMEOUT_MS } = deps;
  const lookups = deps.lookups.with({
    timeoutMs: lookupTimeoutMs,
    settings: { max_execution_time: Math.ceil(lookupTimeoutMs / 1000) },
  });

  let knownToBeSharded: Promise<boolean> | undefined;

  async function askWhetherSharded(): Promise<boolean> {
    try {
      const [table] = await session.rows<{ engine: string }>(
        "pages.engine",
        `SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = '${BY_CREATION.conversations.candidates.table}'`,
      );
      if (table === undefined) knownToBeSharded = undefined;
      return table?.engine === "Distributed";
    } catch (error) {
      knownToBeSharded = undefined;
      throw error;
    }
  }

  const isSharded = (): Promise<boolean> => (knownToBeSharded ??= askWhetherSharded());

  const send: SendStatement = async ({ name, sql, parameters, settings }, open, signal) => {
    try {
      // Each client of the export API has a quota of its own.
      const quotaKey = String(parameters["client"]);
      return await open(await session.stream(name, sql, { parameters, settings, signal, quotaKey }));
    } catch (error) {
      // Converts the reason of an aborted signal too.
      throw toWarehouseError(error);
    }
  };

  const askForConditions = createAskForConditions({ send, isSharded, datesKnown: createDatesKnown(session) });

  const findEnd = createFindEnd({ send, isSharded });
  const read = { send, findEnd, askForConditions, isSharded };
  const pagesOf = (list: List) => createPageReader({ ...read, list });
  const byCreation = Object.fromEntries(
    Object.entries(BY_CREATION).map(([list, of]) => [`${list}ByCreation`, pagesOf(of)]),
  ) as PagesByCreation;
  const messagesOfConversation = pagesOf(MESSAGES_OF_CONVERSATION);

  return {
    lines: createListSteps({ ...read, format: LINES, stepKeys }),
    parquet: createListSteps({ ...read, format: PARQUET, stepKeys }),
    ...byCreation,
    conversationsByUpdate: pagesOf(CONVERSATIONS_BY_UPDATE),
    messagesByCreation: (query) =>
      query.conversationId === undefined
        ? byCreation.messagesByCreation(query)
        : messagesOfConversation(query),
    async endUsers({ clientId, from = "", limit, externalId, signal }) {
      const parameters = { client: clientId, from, size: limit, external_id: externalId ?? "" };
      const { hasErased, sharded } = await askForConditions.conditions(null, parameters, signal);
      const sql = endUsers({ selected: externalId !== undefined, hasErased });
      const settings = { ...pageSettings(RECORD_COLUMN), ...shardedSettings(sharded, false) };
      const statement: PageStatement = { name: "pages.end_users", sql, parameters, settings };
      return send(
        statement,
        (answer) =>
          openPage(answer, limit, ({ rows, behind }) => ({ rows, next: behind?.id ?? null }), signal),
        signal,
      );
    },
    changes: createReadChanges(read),
    findKey: (hash) => findKey(lookups, hash),
    validKeys: (most) => validKeys(lookups, most),
    ping: async () => {
      // Of nobody: all tables that requests need must be readable.
      const erased = session
        .with({ timeoutMs: lookupTimeoutMs })
        .rows(
          "pages.may_read_erased",
          `SELECT (${COUNT_ERASED}), (${COUNT_MOVED}), (SELECT count() FROM watermarks)`,
          { parameters: { client: "" } },
        );
      await Promise.all([erased, findKey(lookups, "")]);
    },
  };
}
