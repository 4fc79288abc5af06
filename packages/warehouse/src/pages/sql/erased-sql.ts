/** `erasure_keys` names records and persons, so late rows are left out too. */
import {
  CONVERSATION_KIND,
  ownTableOf,
  personsOf,
  RECORD_KINDS,
  type RecordKind,
} from "@conversation-export/domain";
import { emailFormSql } from "../../access/email-form-sql.ts";

const namedBy = (kind: RecordKind): readonly (readonly [kind: string, ...columns: string[]])[] => {
  const { idNames, form } = RECORD_KINDS[kind];
  const ofConversation = form.columns.some(({ name }) => name === "conversation_id");
  return [
    ...(idNames === null ? [[kind, ownTableOf(kind).id] as const] : []),
    ...(ofConversation ? [[CONVERSATION_KIND, "conversation_id"] as const] : []),
    ...personsOf(kind).map(
      ([subject, columns]) =>
        [subject, ...(subject === "email" ? columns.map(emailFormSql) : columns)] as const,
    ),
  ];
};

const OF_CLIENT = "erasure_keys WHERE client_id = {client:String} AND phase = 'erased'";

export const COUNT_ERASED = `SELECT count() FROM ${OF_CLIENT}`;

export const selectErased = (row: string): string => `SELECT ${row} FROM ${OF_CLIENT} LIMIT 1`;

export type LookedAt = { readonly table: string; readonly where: string };

export const erasedNames = (kind: RecordKind): string =>
  `[${namedBy(kind)
    .flatMap(([name, ...columns]) => columns.map((column) => `('${name}', ${column})`))
    .join(", ")}]`;

/** Instants before which rows are erased, µs; 0: they are not. */
const erasedBefore = (kind: string, columns: readonly string[], rows: LookedAt | null): string[] => {
  // A client may have a million rows pending deletion.
  const among =
    rows === null
      ? ""
      : `AND id GLOBAL IN (SELECT arrayJoin([${columns.join(", ")}]) FROM ${rows.table} WHERE ${rows.where})`;
  // A scalar is computed once. It is never empty: `transform` needs a value.
  const erased = `(SELECT (groupArray(name), groupArray(before)) FROM (
      SELECT id AS name, max(toUnixTimestamp64Micro(created_before)) AS before FROM ${OF_CLIENT} AND kind = '${kind}' ${among} GROUP BY id
      UNION ALL SELECT '', toInt64(0)))`;
  return columns.map(
    (column) => `transform(${column}, tupleElement(${erased}, 1), tupleElement(${erased}, 2), toInt64(0))`,
  );
};

export const isErased = (kind: RecordKind, rows: LookedAt | null): string =>
  `toUnixTimestamp64Micro(date_created) < greatest(${namedBy(kind)
    .flatMap(([name, ...columns]) => erasedBefore(name, columns, rows))
    .join(", ")})`;

export const isShown = (kind: RecordKind, hasErased: boolean, rows: LookedAt | null): string =>
  hasErased ? `NOT (${isErased(kind, rows)})` : "true";
