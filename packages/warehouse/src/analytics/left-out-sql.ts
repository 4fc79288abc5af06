/** Leaves out former dates (docs/decisions/0017, 0024) and erased records (0022) by sets that are cheap when empty. */
import {
  CONVERSATION_KIND,
  DATED_KINDS,
  type DatedKind,
  ownTableOf,
  type RecordKind,
} from "@conversation-export/domain";
import { KNOWN_UP_TO } from "../changes/moved-dates.ts";
import { erasedNames } from "../pages/sql/erased-sql.ts";
import { recordNameSql } from "../tables/record-dates.ts";

export type ViewTables = {
  readonly table: (name: string) => string;
  /** On shards, so that a subquery reads all of them. */
  readonly global: "GLOBAL " | "";
  readonly knowsLogin: boolean;
};

/** Such users see only the client whose id follows. */
export const CLIENT_USER = "client_";

const isFor = (user: string): string =>
  `(NOT startsWith(${user}, '${CLIENT_USER}') OR r.client_id = substring(${user}, ${CLIENT_USER.length + 1}))`;

export const KNOWS_LOGIN = "(SELECT count() > 0 FROM system.functions WHERE name = 'authenticatedUser')";

export const NOT_FOR_CLIENTS =
  "users of clients need a ClickHouse with the function authenticatedUser: update it and run export-ops migrate";

/**
 * Checks both users, since the native protocol may choose the current one. Servers that hide the login reject clients.
 */
const isForUser = ({ knowsLogin }: ViewTables): string =>
  knowsLogin
    ? `(authenticatedUser() != '' AND ${isFor("authenticatedUser()")} AND ${isFor("currentUser()")})`
    : `throwIf(startsWith(currentUser(), '${CLIENT_USER}'), '${NOT_FOR_CLIENTS}') = 0`;

/** Reads `moved_dates` after its watermark, or dates added in between would be missed. */
const datesOfMoved = (kind: DatedKind, { table, global }: ViewTables): string => `
      SELECT of_client, arrayJoin(dates) FROM (
        SELECT any(client_id) AS of_client, groupUniqArray(date_created) AS dates FROM ${table("record_dates")}
        WHERE record ${global}IN (
          SELECT ${recordNameSql("client_id", kind, "id")} FROM ${table("changes")}
          WHERE kind = '${kind}' AND NOT deleted AND stored_at >= fromUnixTimestamp64Micro(
            toInt64(ifNull((SELECT max(version) FROM ${table("watermarks")} WHERE list = '${KNOWN_UP_TO}'), 0)), 'UTC'))
        GROUP BY record HAVING min(date_created) != max(date_created))
      UNION ALL
      SELECT client_id, date_created FROM ${table("moved_dates")} WHERE kind = '${kind}'`;

/** Keys of rows under a date that is not live. */
const stale = (
  from: { readonly kind: DatedKind; readonly table: string; readonly date: string; readonly keys: string },
  tables: ViewTables,
): string => `
    SELECT client_id, ${from.keys}, moved FROM (
      SELECT client_id, ${from.keys}, argMax(${from.date}, (version, uploaded_at)) AS live,
        groupUniqArray(${from.date}) AS found
      FROM ${tables.table(from.table)}
      WHERE (client_id, ${from.date}) ${tables.global}IN (${datesOfMoved(from.kind, tables)})
      GROUP BY client_id, ${from.keys})
    ARRAY JOIN found AS moved WHERE moved != live`;

const erasedRecords = (kind: RecordKind, { table, global }: ViewTables): string => {
  const { name: own, id, keyDate } = ownTableOf(kind);
  const erased = `${table("erasure_keys")} WHERE phase = 'erased'`;
  // Only the live row has the date.
  const final = keyDate === null ? " FINAL" : "";
  return `
    SELECT found.client_id, found.${id}, found.date_created FROM (
      SELECT client_id, ${id}, date_created, arrayJoin(${erasedNames(kind)}) AS name FROM ${table(own)}${final}
      WHERE client_id ${global}IN (SELECT client_id FROM ${erased})) AS found
    ${global}ALL INNER JOIN (
      SELECT client_id, kind, id AS name, max(created_before) AS before FROM ${erased} GROUP BY client_id, kind, id) AS asked
    ON asked.client_id = found.client_id AND asked.kind = tupleElement(found.name, 1) AND asked.name = tupleElement(found.name, 2)
    WHERE found.date_created < asked.before`;
};

export const isLive = (kind: RecordKind, tables: ViewTables): string => {
  const { name: table, id } = ownTableOf(kind);
  const dated = DATED_KINDS.find((one) => one === kind);
  if (dated === undefined) {
    return `${isForUser(tables)}
  AND (r.client_id, r.${id}) ${tables.global}NOT IN (SELECT client_id, ${id} FROM (${erasedRecords(kind, tables)}))`;
  }
  return `${isForUser(tables)}
  AND (r.client_id, r.${id}, r.date_created) ${tables.global}NOT IN (
    ${stale({ kind: dated, table, date: "date_created", keys: id }, tables)}
    UNION ALL ${erasedRecords(kind, tables)})`;
};

/** Without references and older forms (docs/decisions/0016). */
export const isLiveHandoff = (tables: ViewTables): string => {
  const { table, global } = tables;
  const keys = "conversation_id, target, target_kind";
  const date = "conversation_date_created";
  // Entries are parsed only where an attempt lost its handoff_id.
  const entriesById = `SELECT client_id, conversation_id FROM ${table("handoffs")}
      WHERE target_kind = 'id' AND notEmpty(entry)`;
  const withoutHandoffId = `SELECT client_id, conversation_id, target FROM ${table("handoffs")}
      WHERE target_kind = 'id' AND (client_id, conversation_id) ${global}IN (${entriesById})
      GROUP BY client_id, conversation_id, target HAVING notEmpty(argMax(entry, (version, uploaded_at)))`;
  return `${isForUser(tables)}
    AND notEmpty(r.entry)
    AND (r.client_id, r.conversation_id, r.target, r.target_kind, r.${date}) ${global}NOT IN (
      ${stale({ kind: CONVERSATION_KIND, table: "handoffs", date, keys }, tables)})
    AND (r.client_id, r.conversation_id) ${global}NOT IN (
      SELECT client_id, conversation_id FROM (${erasedRecords(CONVERSATION_KIND, tables)}))
    AND NOT (r.target_kind = 'handoff_id'
      AND (r.client_id, r.conversation_id) ${global}IN (${entriesById})
      AND (r.client_id, r.conversation_id, JSONExtractString(r.entry, 'id')) ${global}IN (${withoutHandoffId}))`;
};
