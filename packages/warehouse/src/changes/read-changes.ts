import { RECORD_KINDS } from "@conversation-export/domain";
import { rangeParameters } from "../pages/find-end.ts";
import type { ChangePage, ChangeQuery, Reader } from "../pages/page.ts";
import { pageSettings, type PageStatement, shardedSettings } from "../pages/page-statements.ts";
import { emptyPage, openPage, type RowsEnd } from "../pages/page-stream.ts";
import type { ReadDeps } from "../pages/read-deps.ts";
import { RECORD_COLUMN } from "../pages/sql/page-sql.ts";
import { changeCandidatesOf, changeRows, changesOf } from "./changes-sql.ts";

/** Reads a record more than a page, fewer if later entries give some. @throws WarehouseError */
export const createReadChanges = (deps: ReadDeps): Reader["changes"] => {
  const { send, findEnd, askForConditions } = deps;

  return async ({
    clientId,
    kind,
    after,
    stableUpTo,
    pageSize,
    signal,
  }: ChangeQuery): Promise<ChangePage> => {
    if (after.date >= stableUpTo) return emptyPage({ rows: 0, next: after, isLast: true });
    const keys = pageSize + 1;
    const window = { after, to: stableUpTo };
    const own = { client: clientId };
    const found = await findEnd("changes.end", changeRows(kind), own, window, keys, signal);
    const { end, isLast } = found;
    if (found.keys === 0) return emptyPage({ rows: 0, next: end, isLast });
    const parameters = { ...own, ...rangeParameters(after, end), stableUpTo, size: pageSize };
    const shape = await askForConditions.conditions(changeCandidatesOf(kind), parameters, signal);
    const statement: PageStatement = {
      name: `changes.${RECORD_KINDS[kind].list}`,
      sql: changesOf(kind, shape),
      parameters,
      settings: { ...pageSettings(RECORD_COLUMN), ...shardedSettings(shape.sharded, shape.hasMoved) },
    };
    const endOfRows = ({ rows, last, behind }: RowsEnd) =>
      last !== undefined && behind !== undefined
        ? { rows, next: last, isLast: false }
        : { rows, next: end, isLast };
    return send(statement, (answer) => openPage(answer, pageSize, endOfRows, signal), signal);
  };
};
