import { runSql } from "./warehouse-http.ts";

/** 2026-06-01T00:00:00Z in µs. */
export const WINDOW_START = 1_780_272_000_000_000;
export const WINDOW_MICROS = 7 * 86_400_000_000;
export const WINDOW_END = WINDOW_START + WINDOW_MICROS;

const TABLES = ["record_dates", "changes", "handoffs", "conversation_updates", "conversations"] as const;

const WORDS =
  "the order is was to and a not my has been for with you it can please delivery refund account still since number again parcel help received address change card charged twice yesterday invoice shows another item than ordered broken box return label printer password reset mail never arrived checked spam folder agent told me wait three days but nothing happened so far thank bye";

const REASONS =
  "['tool_failed', 'end_user_requested', 'out_of_scope', 'issue_unresolved', 'handoff_configured', 'other']";

type Window = {
  readonly client: string;
  readonly conversations: number;
  readonly exports: number;
  readonly isLate: boolean;
  readonly blockRows: number;
};

const stage = ({ client, conversations, exports, isLate }: Window, round: number): string => {
  const step = Math.round(WINDOW_MICROS / conversations);
  const soon = "cityHash64(n, 4) % 1800000000";
  return `CREATE OR REPLACE TABLE bench_stage ENGINE = MergeTree ORDER BY n AS
    WITH number AS n,
      splitByChar(' ', '${WORDS}') AS words,
      ${WINDOW_START} + n * ${step} + cityHash64(n) % ${step} AS created,
      ${isLate ? `if(cityHash64(n, 7) % 50 = 0, cityHash64(n, 3) % 259200000000, ${soon})` : soon} AS delay,
      created + intDiv(delay * ${round}, ${Math.max(1, exports - 1)}) AS updated
    SELECT n,
      '${client}' AS client_id,
      fromUnixTimestamp64Micro(toInt64(created), 'UTC') AS date_created,
      lower(hex(cityHash64(n, 1))) || lower(hex(toUInt32(n))) AS conversation_id,
      bitShiftLeft(toUInt128(updated + 1000000), 64) + n AS version,
      fromUnixTimestamp64Micro(toInt64(updated + 1000000), 'UTC') AS exported_at,
      fromUnixTimestamp64Micro(toInt64(updated + 2000000), 'UTC') AS uploaded_at,
      fromUnixTimestamp64Micro(toInt64(updated), 'UTC') AS date_updated,
      lower(hex(cityHash64(n, 2))) AS chatter_id,
      ['en', 'de', 'fr', 'es', 'pt'][1 + cityHash64(n, 13) % 5] AS language,
      ['web', 'ios', 'android', 'whatsapp'][1 + cityHash64(n, 14) % 4] AS platform,
      if(cityHash64(n, 5) % 3 = 0, 'Not Resolved', 'Resolved') AS automated_resolution_classification,
      concat('Topic ', toString(cityHash64(n, 6) % 200)) AS generated_topic_label,
      cityHash64(n, 15) % 5 != 0 AS is_engaged,
      cityHash64(n, 77) % 4 = 0 AS is_escalated,
      cityHash64(n, 16) % 50 = 0 AS is_test_user,
      if(cityHash64(n, 17) % 10 = 0, toFloat64(1 + cityHash64(n, 18) % 5), NULL) AS csat_score,
      concat('{"_id":"', conversation_id, '","agent_id":[],"agent_name":[],"date_created":"',
        formatDateTime(date_created, '%Y-%m-%dT%H:%i:%S.%f', 'UTC'), '+00:00","inquiry_summary":"',
        substring(arrayStringConcat(arrayMap(i -> words[1 + intHash64(n * 1000 + i * 4 + ${round}) % length(words)],
          range(170)), ' '), 1, 900),
        '","language":"', language, '","platform":"', platform, '","used_coaching":[],"used_articles":[],"handoffs":') AS head,
      concat(',"used_playbooks":[],"used_mcp":[],"variables":{"order":"', lower(hex(cityHash64(n, 10))),
        '","note":"', substring(repeat(concat(lower(hex(cityHash64(n, 11))), ' '), 15), 1, 200),
        '","export":${round}}}') AS tail
    FROM numbers(${conversations})`;
};

const SHARED = "client_id, date_created, conversation_id, version, uploaded_at, date_updated";
const ASKED =
  "chatter_id, language, platform, automated_resolution_classification, generated_topic_label, is_engaged, is_escalated, is_test_user, csat_score";

const inserts = (client: string): readonly string[] => [
  `INSERT INTO record_dates (client_id, record, date_created)
    SELECT client_id, concat('${client.length}/${client}/c/', conversation_id), date_created FROM bench_stage ORDER BY n`,
  `INSERT INTO changes (client_id, kind, stored_at, id, date_created)
    SELECT client_id, 'conversation', uploaded_at, conversation_id, date_created FROM bench_stage ORDER BY n`,
  `INSERT INTO handoffs (client_id, conversation_date_created, conversation_id, target, target_kind, version,
      uploaded_at, date_created, name, outcome_status, reason_code, entry)
    SELECT client_id, date_created, conversation_id, 'desk', 1,
      bitShiftLeft(toUInt256(toUnixTimestamp64Micro(date_updated)), 128) + toUInt256(version), uploaded_at, date_updated,
      'Desk', if(cityHash64(n, 19) % 6 = 0, 'failed', 'succeeded'), ${REASONS}[1 + cityHash64(n, 20) % 6],
      concat('{"name":"Desk","handoff_id":"desk","id":"', conversation_id, '","date_created":"', toString(date_updated),
        '","outcome_status":"succeeded","reason_code":"other","reasoning":"The customer asked for a person."}')
    FROM bench_stage WHERE is_escalated ORDER BY n`,
  `INSERT INTO conversation_updates (${SHARED}) SELECT ${SHARED} FROM bench_stage ORDER BY n`,
  `INSERT INTO conversations (${SHARED}, exported_at, ${ASKED}, head, tail)
    SELECT ${SHARED}, exported_at, ${ASKED}, head, tail FROM bench_stage ORDER BY n`,
];

const fillRound = async (url: string, window: Window, round: number): Promise<void> => {
  await runSql(url, stage(window, round));
  const { blockRows } = window;
  const blocks = `SETTINGS max_insert_block_size = ${blockRows}, max_block_size = ${blockRows}, min_insert_block_size_rows = ${blockRows}, min_insert_block_size_bytes = 0, preferred_block_size_bytes = 0, preferred_max_column_in_block_size_bytes = 0, max_threads = 1, optimize_on_insert = 0`;
  for (const insert of inserts(window.client)) await runSql(url, `${insert} ${blocks}`);
  await runSql(url, "DROP TABLE bench_stage");
};

export const fillWindow = async (
  url: string,
  window: Pick<Window, "conversations" | "exports" | "blockRows"> & { readonly client?: string },
): Promise<void> => {
  const whole = { client: "bench", isLate: true, ...window };
  for (let round = 0; round < window.exports; round += 1) await fillRound(url, whole, round);
};

export const LATE = "bench";
export const PROMPT = "prompt";
const PARTS = 5;

/** Merges are stopped so that every run has the same parts. */
export const fillMeasured = async (url: string, conversations: number): Promise<void> => {
  const quarter = Math.ceil(conversations / 4);
  const late = { client: LATE, conversations, exports: 2, isLate: true, blockRows: 100_000 };
  const prompt = { client: PROMPT, conversations: quarter, exports: 1, isLate: false, blockRows: 100_000 };
  await fillRound(url, prompt, 0);
  await fillRound(url, late, 0);
  for (const table of TABLES) {
    await runSql(url, `OPTIMIZE TABLE ${table} FINAL`);
    await runSql(url, `SYSTEM STOP MERGES ${table}`);
  }
  await fillRound(url, { ...late, blockRows: Math.ceil(conversations / PARTS) }, 1);
};

export const mergesIdle = async (url: string): Promise<void> => {
  for (let quiet = 0; quiet < 5; ) {
    const { text } = await runSql(url, "SELECT count() FROM system.merges");
    quiet = text.trim() === "0" ? quiet + 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
};
