const OWN = {
  conversations: { code: "c", id: "conversation_id" },
  messages: { code: "m", id: "message_id" },
} as const;

export const noteDates = (
  table: keyof typeof OWN,
  { database, addedAt = "now()" }: { readonly database?: string; readonly addedAt?: string } = {},
): string => {
  const { code, id } = OWN[table];
  const prefix = database === undefined ? "" : `${database}.`;
  return `INSERT INTO ${prefix}record_dates (client_id, record, date_created, added_at)
    SELECT DISTINCT client_id, concat(toString(length(client_id)), '/', client_id, '/${code}/', ${id}), date_created, ${addedAt} FROM ${prefix}${table}`;
};

const DATED: readonly [table: string, kind: string, id: string, created: string][] = [
  ["handoffs", "conversation", "conversation_id", "conversation_date_created"],
  ["conversation_updates", "conversation", "conversation_id", "date_created"],
  ["conversations", "conversation", "conversation_id", "date_created"],
  ["messages", "message", "message_id", "date_created"],
];

/** There must be none. */
export const ROWS_WITHOUT_DATE = DATED.map(
  ([table, kind, id, created]) => `SELECT DISTINCT concat('${table} ', client_id, ' ', ${id}) FROM ${table}
    WHERE (client_id, ${id}, ${created}) GLOBAL NOT IN
      (SELECT client_id, id, date_created FROM record_dates WHERE kind = '${kind}')`,
).join(" UNION ALL ");
