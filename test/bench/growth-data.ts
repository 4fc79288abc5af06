export const instantOf = (micros: string): string => `fromUnixTimestamp64Micro(toInt64(${micros}), 'UTC')`;

export const insertsOf = (rows: {
  readonly from: string;
  readonly client: string;
  readonly id: string;
  readonly created: string;
  readonly uploaded: string;
}): string[] => {
  const { from, client, id, created, uploaded } = rows;
  const columns = `${client} AS client, ${id} AS id, ${instantOf(created)} AS created, ${instantOf(uploaded)} AS uploaded,
    bitShiftLeft(toUInt128(${uploaded}), 64) + n AS version, repeat(lower(hex(cityHash64(n))), 10) AS text`;
  const select = (list: string): string => `SELECT ${list} FROM (SELECT ${columns} FROM (${from}))`;
  return [
    `INSERT INTO record_dates (client_id, record, date_created)
      ${select("client, concat(toString(length(client)), '/', client, '/c/', id), created")}`,
    `INSERT INTO record_dates (client_id, record, date_created)
      ${select("client, concat(toString(length(client)), '/', client, '/m/', id), created")}`,
    `INSERT INTO changes (client_id, kind, stored_at, id, date_created)
      ${select("client, 'conversation', uploaded, id, created")}`,
    `INSERT INTO changes (client_id, kind, stored_at, id, date_created)
      ${select("client, 'message', uploaded, id, created")}`,
    `INSERT INTO conversation_updates (client_id, date_updated, conversation_id, version, date_created, uploaded_at)
      ${select("client, uploaded, id, version, created, uploaded")}`,
    `INSERT INTO conversations (client_id, date_created, conversation_id, version, exported_at, uploaded_at, date_updated, head, tail)
      ${select("client, created, id, version, uploaded, uploaded, uploaded, text, '}'")}`,
    `INSERT INTO messages (client_id, date_created, message_id, version, exported_at, uploaded_at, conversation_id, record)
      ${select("client, created, id, version, uploaded, uploaded, id, text")}`,
    `INSERT INTO end_users (client_id, end_user_id, version, exported_at, uploaded_at, date_created, date_updated, record)
      ${select("client, id, version, uploaded, uploaded, created, uploaded, text")}`,
  ];
};

const TABLES = ["record_dates", "changes", "conversation_updates", "conversations", "messages", "end_users"];

export const mergeAll = async (sql: (statement: string) => Promise<unknown>): Promise<void> => {
  for (const table of TABLES) await sql(`OPTIMIZE TABLE ${table} FINAL`);
};
