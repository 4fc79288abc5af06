/**
 * The SQL by which readers leave out erased records. `erasure_keys` names records and persons, so late rows
 * are left out too. Parameter: `client`.
 */
import { ownTableOf, personsOf, RECORD_KINDS, type RecordKind } from "@conversation-export/domain";
import { emailFormSql } from "../../access/email-form-sql.ts";

/** Kinds of `erasure_keys` and the columns that they are compared with. */
const namedBy = (kind: RecordKind): readonly (readonly [kind: string, ...columns: string[]])[] => {
  const { idNames, form } = RECORD_KINDS[kind];
  const ofConversation = form.columns.some(({ name }) => name === "conversation_id");
  return [
    ...(idNames === null ? [[kind, ownTableOf(kind).id] as const] : []),
    ...(ofConversation ? [["conversation", "conversation_id"] as const] : []),
    ...personsOf(kind).map(
      ([subject, columns]) =>
        [subject, ...(subject === "email" ? columns.map(emailFormSql) : columns)] as const,
    ),
  ];
};

const OF_CLIENT = "erasure_keys WHERE client_id = {client:String} AND phase = 'erased'";

/** SQL for how many rows hide something of the client. */
export const COUNT_ERASED = `SELECT count() FROM ${OF_CLIENT}`;

export const selectErased = (row: string): string => `SELECT ${row} FROM ${OF_CLIENT} LIMIT 1`;

/** The rows that a statement looks at: `FROM table WHERE where`, all versions. */
export type LookedAt = { readonly table: string; readonly where: string };

/** SQL for the names by which rows of a kind may be erased: an array of kind and value. */
export const erasedNames = (kind: RecordKind): string =>
  `[${namedBy(kind)
    .flatMap(([name, ...columns]) => columns.map((column) => `('${name}', ${column})`))
    .join(", ")}]`;

/** The instants before which rows with one of the values in these columns are erased, in µs; 0: they are not. */
const erasedBefore = (kind: string, columns: readonly string[], rows: LookedAt | null): string[] => {
  // Only of the rows in question: a client may have a million rows pending deletion.
  const among =
    rows === null
      ? ""
      : `AND id GLOBAL IN (SELECT arrayJoin([${columns.join(", ")}]) FROM ${rows.table} WHERE ${rows.where})`;
  // One scalar, which is computed once although it is named often. It is never empty: `transform` needs a value.
  const erased = `(SELECT (groupArray(name), groupArray(before)) FROM (
      SELECT id AS name, max(toUnixTimestamp64Micro(created_before)) AS before FROM ${OF_CLIENT} AND kind = '${kind}' ${among} GROUP BY id
      UNION ALL SELECT '', toInt64(0)))`;
  return columns.map(
    (column) => `transform(${column}, tupleElement(${erased}, 1), tupleElement(${erased}, 2), toInt64(0))`,
  );
};

/**
 * SQL condition for rows of a kind that are erased.
 *
 * @param rows those that it is asked about; null: any
 */
export const isErased = (kind: RecordKind, rows: LookedAt | null): string =>
  `toUnixTimestamp64Micro(date_created) < greatest(${namedBy(kind)
    .flatMap(([name, ...columns]) => erasedBefore(name, columns, rows))
    .join(", ")})`;

/** SQL condition for rows of a kind that readers see; `true` when nothing of the client is erased. */
export const isShown = (kind: RecordKind, hasErased: boolean, rows: LookedAt | null): string =>
  hasErased ? `NOT (${isErased(kind, rows)})` : "true";
