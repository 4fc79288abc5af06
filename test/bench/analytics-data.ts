import { WINDOW_MICROS, WINDOW_START } from "./window-data.ts";
import { runSql } from "./warehouse-http.ts";

export const ANALYTICS_CLIENT = "bench-analytics";
const CLIENT = ANALYTICS_CLIENT;
/** Exports of each conversation: two thirds of the rows are superseded. */
const EXPORTS = 3;
/** One conversation in so many has a row under another date. */
const MOVED = 1_000;

const BLOCKS =
  "SETTINGS max_insert_block_size = 20000, max_block_size = 20000, min_insert_block_size_rows = 20000, min_insert_block_size_bytes = 0, preferred_block_size_bytes = 0, preferred_max_column_in_block_size_bytes = 0, max_threads = 1, optimize_on_insert = 0";

/** Exports of conversations with what analysts ask about: `n`, the number of a conversation, and its fields. */
const stage = (conversations: number, round: number): string => {
  const step = Math.round(WINDOW_MICROS / conversations);
  const text = `substring(repeat(concat(lower(hex(cityHash64(n, 9, ${round}))), ' asked where the order is '), 30), 1, 900)`;
  return `CREATE OR REPLACE TABLE bench_stage ENGINE = MergeTree ORDER BY n AS
    WITH number AS n,
      toInt64(${WINDOW_START} + n * ${step} + cityHash64(n) % ${step}) AS created,
      created + toInt64(${round}) * 900000000 AS updated
    SELECT n,
      fromUnixTimestamp64Micro(created, 'UTC') AS date_created,
      lower(hex(cityHash64(n, 1))) || lower(hex(toUInt32(n))) AS conversation_id,
      bitShiftLeft(toUInt128(updated), 64) + n AS version,
      fromUnixTimestamp64Micro(updated, 'UTC') AS date_updated,
      now64(6) AS uploaded_at,
      lower(hex(cityHash64(n, 2))) AS chatter_id,
      ['en', 'de', 'fr', 'es', 'pt'][1 + cityHash64(n, 3) % 5] AS language,
      ['web', 'ios', 'android', 'whatsapp'][1 + cityHash64(n, 4) % 4] AS platform,
      if(cityHash64(n, 5) % 3 = 0, 'Not Resolved', 'Resolved') AS resolution,
      concat('Topic ', toString(cityHash64(n, 6) % 200)) AS topic,
      cityHash64(n, 7) % 5 != 0 AS is_engaged,
      cityHash64(n, 8) % 4 = 0 AS is_escalated,
      cityHash64(n, 9) % 50 = 0 AS is_test_user,
      if(cityHash64(n, 10) % 10 = 0, toFloat64(1 + cityHash64(n, 11) % 5), NULL) AS csat_score,
      concat('{"_id":"', conversation_id, '","inquiry_summary":"', ${text}, '","handoffs":') AS head,
      concat(',"variables":{"order":"', lower(hex(cityHash64(n, 12))), '"}}') AS tail
    FROM numbers(${conversations})`;
};

const REASONS =
  "['tool_failed', 'end_user_requested', 'out_of_scope', 'issue_unresolved', 'handoff_configured', 'other']";

const handoffs = (
  isReference: boolean,
): string => `INSERT INTO handoffs (client_id, conversation_date_created,
    conversation_id, target, target_kind, version, uploaded_at, date_created, name, outcome_status, reason_code, entry)
  SELECT '${CLIENT}', date_created, conversation_id, ${isReference ? "concat('a', conversation_id), 2" : "'desk', 1"},
    bitShiftLeft(toUInt256(toUnixTimestamp64Micro(date_updated)), 128) + toUInt256(version), uploaded_at, date_updated,
    ${
      isReference
        ? "'', '', NULL, ''"
        : `'Desk', if(cityHash64(n, 13) % 6 = 0, 'failed', 'succeeded'), ${REASONS}[1 + cityHash64(n, 14) % 6],
    concat('{"name":"Desk","handoff_id":"desk","id":"a', conversation_id, '","date_created":"', toString(date_updated),
      '","outcome_status":"succeeded","reason_code":"other","reasoning":"The customer asked for a person."}')`
    }
  FROM bench_stage WHERE is_escalated ORDER BY n ${BLOCKS}`;

/** Fills the tables with conversations of a week, each exported three times, a quarter of them with a handoff. */
export const fillAnalytics = async (
  url: string,
  conversations: number,
  log: (line: string) => void,
): Promise<void> => {
  for (let round = 0; round < EXPORTS; round += 1) {
    await runSql(url, stage(conversations, round));
    await runSql(
      url,
      `INSERT INTO record_dates (client_id, record, date_created)
      SELECT '${CLIENT}', concat('${CLIENT.length}/${CLIENT}/c/', conversation_id), date_created FROM bench_stage ORDER BY n ${BLOCKS}`,
    );
    await runSql(
      url,
      `INSERT INTO changes (client_id, kind, stored_at, id, date_created, deleted)
      SELECT '${CLIENT}', 'conversation', uploaded_at, conversation_id, date_created, false FROM bench_stage ORDER BY n ${BLOCKS}`,
    );
    for (const isReference of [true, false]) await runSql(url, handoffs(isReference));
    await runSql(
      url,
      `INSERT INTO conversations (client_id, date_created, conversation_id, version, exported_at, uploaded_at, date_updated,
        chatter_id, language, platform, automated_resolution_classification, generated_topic_label, is_engaged, is_escalated,
        is_test_user, csat_score, head, tail)
      SELECT '${CLIENT}', date_created, conversation_id, version, date_updated, uploaded_at, date_updated, chatter_id, language,
        platform, resolution, topic, is_engaged, is_escalated, is_test_user, csat_score, head, tail
      FROM bench_stage ORDER BY n ${BLOCKS}`,
    );
    log(`export ${round + 1} of ${EXPORTS} of ${conversations} conversations is in the warehouse`);
  }
  await runSql(url, "DROP TABLE bench_stage");
  await runSql(
    url,
    `INSERT INTO watermarks (list, version, instant)
    SELECT 'changes with dates noted', toUnixTimestamp64Micro(now64(6)), now64(6)`,
  );
};

/** Gives one conversation in 1,000 an older export under another date, as ingest and jobs note it. */
export const moveSome = async (url: string): Promise<void> => {
  const some = `FROM conversations WHERE client_id = '${CLIENT}' AND cityHash64(conversation_id) % ${MOVED} = 0`;
  const before = "date_created - INTERVAL 1 DAY AS date_created";
  await runSql(
    url,
    `INSERT INTO record_dates (client_id, record, date_created)
    SELECT client_id, concat('${CLIENT.length}/${CLIENT}/c/', conversation_id), ${before} ${some}`,
  );
  await runSql(
    url,
    `INSERT INTO moved_dates (client_id, kind, date_created)
    SELECT client_id, 'conversation', arrayJoin([date_created, date_created - INTERVAL 1 DAY]) ${some}`,
  );
  await runSql(url, `INSERT INTO conversations SELECT * REPLACE (${before}, version - 1 AS version) ${some}`);
};
