import { text } from "node:stream/consumers";
import { RECORD_KINDS } from "@conversation-export/domain";
import type { AskForFacts } from "../pages/ask-facts.ts";
import { askNearFirst } from "../pages/near-part.ts";
import type { ChangePage, ChangeQuery, Reader } from "../pages/page.ts";
import { endStatement, pageSettings, type PageStatement, spreadSettings } from "../pages/page-statements.ts";
import { emptyPage, openPage, type RowsEnd } from "../pages/page-stream.ts";
import type { SendStatement } from "../pages/send-statement.ts";
import { endOfAnswer, RECORD_COLUMN } from "../pages/sql/page-sql.ts";
import { DATED_KINDS } from "../tables/record-dates.ts";
import { changeCandidates, changeRows, changesOf } from "./changes-sql.ts";

/**
 * Reads pages of changes. A page looks at the first entries of as many records as it holds and one more, since it reads
 * the texts of all records with entries: it is short where later entries give some of them out.
 *
 * @throws WarehouseError
 */
export const createReadChanges = (deps: {
  readonly send: SendStatement;
  readonly askForFacts: AskForFacts;
  readonly isSpread: () => Promise<boolean>;
  readonly notedDates: () => Promise<number>;
}): Reader["changes"] => {
  const { send, askForFacts, isSpread, notedDates } = deps;

  return async ({ clientId, kind, after, settled, pageSize, signal }: ChangeQuery): Promise<ChangePage> => {
    if (after.date >= settled) return emptyPage({ rows: 0, next: after, isLast: true });
    const spread = await isSpread();
    const noted = await notedDates();
    const keys = pageSize + 1;
    const range = { client: clientId, after_date: after.date, after_id: after.id, end_id: "" };
    const ask = async (until: number) => {
      const parameters = { ...range, end_date: until, keys };
      return endOfAnswer(
        await send(endStatement("changes.end", changeRows(kind), parameters, spread), text, signal),
      );
    };
    const found = await askNearFirst(after.date, settled, ask, (answer) => answer.keys === keys);
    const isLast = found.keys < keys;
    const end = isLast ? { date: settled, id: "" } : found.last;
    if (found.keys === 0) return emptyPage({ rows: 0, next: end, isLast });
    const parameters = { ...range, end_date: end.date, end_id: end.id, settled, size: pageSize, noted };
    const dated = DATED_KINDS.find((one) => one === kind);
    const candidates = dated === undefined ? null : changeCandidates(dated);
    const shape = { ...(await askForFacts.facts(candidates, parameters, signal)), spread };
    const statement: PageStatement = {
      name: `changes.${RECORD_KINDS[kind].list}`,
      sql: changesOf(kind, shape),
      parameters,
      settings: { ...pageSettings(RECORD_COLUMN), ...spreadSettings(spread, shape.severalDates) },
    };
    const endOfRows = ({ rows, last, behind }: RowsEnd) =>
      last !== undefined && behind !== undefined
        ? { rows, next: last, isLast: false }
        : { rows, next: end, isLast };
    return send(statement, (answer) => openPage(answer, pageSize, endOfRows, signal), signal);
  };
};
