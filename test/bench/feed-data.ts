import { runSql } from "./warehouse-http.ts";
import { WINDOW_MICROS, WINDOW_START } from "./window-data.ts";

/** Records of one client, stored in the order in which they were exported. */
export type FeedData = {
  readonly client: string;
  readonly kind: "conversation" | "message";
  /** Exports of all records together. */
  readonly stored: number;
  /** Exports of each record. */
  readonly exports: number;
  /** Whether ids ascend with the date of creation. */
  readonly ids: "ascending" | "random";
  /** One record in so many was created up to three days before its last export; null: none. */
  readonly lateOneIn: number | null;
};

/** Rows per INSERT, as ingest writes them. */
const BLOCK_ROWS = 20_000;
const BLOCK = `SETTINGS max_insert_block_size = ${BLOCK_ROWS}, max_block_size = ${BLOCK_ROWS}, min_insert_block_size_rows = ${BLOCK_ROWS}, min_insert_block_size_bytes = 0, preferred_block_size_bytes = 0, preferred_max_column_in_block_size_bytes = 0, max_threads = 1, optimize_on_insert = 0`;
const STAGE = "FROM feed_stage ORDER BY i";

const ID = {
  ascending: "lower(hex(toUInt64(created))) || substring(lower(hex(cityHash64(n, 1))), 1, 8)",
  random: "lower(hex(cityHash64(n, 1))) || lower(hex(toUInt32(n)))",
} as const;

/** INSERTs in the order of ingest; each SELECT reads `feed_stage`. */
const statementsOf = ({ client, kind }: FeedData): readonly string[] => {
  const dates = `INSERT INTO record_dates (client_id, record, date_created)
    SELECT '${client}', concat('${client.length}/${client}/${kind === "message" ? "m" : "c"}/', id), date_created ${STAGE}`;
  const changes = `INSERT INTO changes (client_id, kind, stored_at, id, date_created)
    SELECT '${client}', '${kind}', stored_at, id, date_created ${STAGE}`;
  if (kind === "message") {
    return [
      dates,
      changes,
      `INSERT INTO messages (client_id, date_created, message_id, version, exported_at, uploaded_at, conversation_id, record)
      SELECT '${client}', date_created, id, version, exported_at, uploaded_at, lower(hex(cityHash64(intDiv(n, 8)))),
        concat('{"_id":"', id, '","text":"', substring(text, 1, 400), '"}') ${STAGE}`,
    ];
  }
  return [
    dates,
    changes,
    `INSERT INTO handoffs (client_id, conversation_date_created, conversation_id, target, target_kind, version,
        uploaded_at, date_created, name, outcome_status, reason_code, entry)
      SELECT '${client}', date_created, id, 'desk', 1,
        bitShiftLeft(toUInt256(toUnixTimestamp64Micro(exported_at)), 128) + toUInt256(version), uploaded_at,
        exported_at, 'Desk', 'succeeded', 'other',
        concat('{"name":"Desk","handoff_id":"desk","id":"', id, '","date_created":"', toString(exported_at),
          '","outcome_status":"succeeded","reason_code":"other","reasoning":"The customer asked for a person."}')
      FROM feed_stage WHERE cityHash64(n, 77) % 4 = 0 ORDER BY i`,
    `INSERT INTO conversations (client_id, date_created, conversation_id, version, exported_at, uploaded_at, date_updated, language, head, tail)
      SELECT '${client}', date_created, id, version, exported_at, uploaded_at, exported_at, 'en',
        concat('{"_id":"', id, '","agent_id":[],"agent_name":[],"inquiry_summary":"', text,
          '","language":"en","platform":"web","used_coaching":[],"used_articles":[],"handoffs":'),
        concat(',"used_playbooks":[],"used_mcp":[],"variables":{"note":"', substring(text, 1, 200), '"}}') ${STAGE}`,
  ];
};

/**
 * Fills the tables with a week of one client. Records are exported within half an hour of their creation,
 * late ones within three days; one conversation in four has a handoff.
 */
export const fillFeed = async (url: string, data: FeedData): Promise<void> => {
  const records = Math.floor(data.stored / data.exports);
  const step = Math.round(WINDOW_MICROS / records);
  // Later exports of a record are spread over the delay of its last one.
  await runSql(
    url,
    `CREATE OR REPLACE TABLE feed_stage ENGINE = MergeTree ORDER BY i AS
    SELECT *, uploaded_at + toIntervalMicrosecond(i % ${BLOCK_ROWS}) AS stored_at
    FROM (SELECT *, max(exported_at) OVER (PARTITION BY intDiv(i, ${BLOCK_ROWS})) AS uploaded_at
      FROM (SELECT *, row_number() OVER (ORDER BY exported_at, n) - 1 AS i FROM (
        WITH if(${data.lateOneIn === null ? "false" : `cityHash64(n, 7) % ${data.lateOneIn} = 0`},
            cityHash64(n, 3) % 259200000000, cityHash64(n, 4) % 1800000000) AS delay,
          ${WINDOW_START} + n * ${step} + cityHash64(n) % ${step} - delay AS created,
          created + intDiv(delay * (e + 1), ${data.exports}) + 1000000 AS exported
        SELECT intDiv(number, ${data.exports}) AS n, number % ${data.exports} AS e, ${ID[data.ids]} AS id,
          fromUnixTimestamp64Micro(toInt64(created), 'UTC') AS date_created,
          fromUnixTimestamp64Micro(toInt64(exported), 'UTC') AS exported_at,
          bitShiftLeft(toUInt128(exported), 64) + n AS version,
          substring(repeat(concat(lower(hex(cityHash64(n, 9, e))), ' asked where the order is '), 30), 1, 900) AS text
        FROM numbers(${records * data.exports}))))`,
  );
  for (const statement of statementsOf(data)) await runSql(url, `${statement} ${BLOCK}`);
  await runSql(url, "DROP TABLE feed_stage");
};
