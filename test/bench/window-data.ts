import { runSql } from "./warehouse-http.ts";

/** 2026-06-01T00:00:00Z in µs. */
export const WINDOW_START = 1_780_272_000_000_000;
export const WINDOW_MICROS = 7 * 86_400_000_000;
export const WINDOW_END = WINDOW_START + WINDOW_MICROS;

/** Content of summaries: one repeated phrase, or random words, which compress like real text. */
export type Summaries = "phrase" | "prose";

const WORDS =
  "the order is was to and a not my has been for with you it can please delivery refund account still since number again parcel help received address change card charged twice yesterday invoice shows another item than ordered broken box return label printer password reset mail never arrived checked spam folder agent told me wait three days but nothing happened so far thank bye";

const summaryOf = (round: number): Readonly<Record<Summaries, string>> => ({
  phrase: `repeat(concat(lower(hex(cityHash64(n, 9, ${round}))), ' asked where the order is '), 30)`,
  prose: `arrayStringConcat(arrayMap(i -> words[1 + intHash64(n * 1000 + i * 4 + ${round}) % length(words)], range(170)), ' ')`,
});

/** Ids that ascend in time, as platforms often make them, or random ones. */
export type Ids = "ascending" | "random";

const ID: Readonly<Record<Ids, string>> = {
  ascending: "leftPad(lower(hex(toUInt64(created))), 16, '0') || lower(hex(toUInt32(n)))",
  random: "lower(hex(cityHash64(n, 1))) || lower(hex(toUInt32(n)))",
};

/**
 * Fills the tables with a week of one client: `conversations` conversations of about 1.3 kB, each exported
 * `exports` times (2 or more), one in four with a handoff, one in fifty updated up to three days later and
 * the others within half an hour. Rows are inserted as ingest does, in blocks and in the order of export;
 * merges are not disturbed.
 */
export const fillWindow = async (
  url: string,
  {
    conversations,
    exports,
    summaries = "phrase",
    byUpdate = true,
    blockRows = 20_000,
    client = "bench",
    ids = "random",
  }: {
    readonly conversations: number;
    readonly exports: number;
    readonly summaries?: Summaries;
    /** false: `conversation_updates` is not filled. */
    readonly byUpdate?: boolean;
    /** Rows per INSERT. */
    readonly blockRows?: number;
    readonly client?: string;
    readonly ids?: Ids;
  },
  onProgress: (line: string) => void,
): Promise<void> => {
  const step = Math.round(WINDOW_MICROS / conversations);
  for (let round = 0; round < exports; round += 1) {
    await runSql(
      url,
      `CREATE OR REPLACE TABLE bench_stage ENGINE = MergeTree ORDER BY n AS
      WITH
        number AS n,
        splitByChar(' ', '${WORDS}') AS words,
        ${WINDOW_START} + n * ${step} + cityHash64(n) % ${step} AS created,
        if(cityHash64(n, 7) % 50 = 0, cityHash64(n, 3) % 259200000000, cityHash64(n, 4) % 1800000000) AS delay,
        created + intDiv(delay * ${round}, ${exports - 1}) AS updated
      SELECT n,
        fromUnixTimestamp64Micro(toInt64(created), 'UTC') AS date_created,
        ${ID[ids]} AS conversation_id,
        bitShiftLeft(toUInt128(updated + 1000000), 64) + n AS version,
        fromUnixTimestamp64Micro(toInt64(updated + 1000000), 'UTC') AS exported_at,
        fromUnixTimestamp64Micro(toInt64(updated), 'UTC') AS date_updated,
        now64(6) AS uploaded_at,
        concat('{"_id":"', conversation_id, '","agent_id":[],"agent_name":[],"date_created":"',
          formatDateTime(date_created, '%Y-%m-%dT%H:%i:%S.%f', 'UTC'), '+00:00","inquiry_summary":"',
          substring(${summaryOf(round)[summaries]}, 1, 900),
          '","language":"en","platform":"web","used_coaching":[],"used_articles":[],"handoffs":') AS head,
        concat(',"used_playbooks":[],"used_mcp":[],"variables":{"order":"', lower(hex(cityHash64(n, 10))),
          '","note":"', substring(repeat(concat(lower(hex(cityHash64(n, 11))), ' '), 15), 1, 200), '","export":${round}}}') AS tail
      FROM numbers(${conversations})`,
    );
    const block = `SETTINGS max_insert_block_size = ${blockRows}, max_block_size = ${blockRows}, min_insert_block_size_rows = ${blockRows}, min_insert_block_size_bytes = 0, preferred_block_size_bytes = 0, preferred_max_column_in_block_size_bytes = 0, max_threads = 1, optimize_on_insert = 0`;
    await runSql(
      url,
      `INSERT INTO record_dates (client_id, record, date_created)
      SELECT '${client}', concat('${client.length}/${client}/c/', conversation_id), date_created FROM bench_stage ORDER BY n ${block}`,
    );
    await runSql(
      url,
      `INSERT INTO handoffs (client_id, conversation_date_created, conversation_id, target, target_kind, version,
          uploaded_at, date_created, name, outcome_status, reason_code, entry)
      SELECT '${client}', date_created, conversation_id, 'desk', 1,
        bitShiftLeft(toUInt256(toUnixTimestamp64Micro(date_updated)), 128) + toUInt256(version), uploaded_at,
        date_updated, 'Desk', 'succeeded', 'other',
        concat('{"name":"Desk","handoff_id":"desk","id":"', conversation_id, '","date_created":"', toString(date_updated),
          '","outcome_status":"succeeded","reason_code":"other","reasoning":"The customer asked for a person."}')
      FROM bench_stage WHERE cityHash64(n, 77) % 4 = 0 ORDER BY n ${block}`,
    );
    if (byUpdate) {
      await runSql(
        url,
        `INSERT INTO conversation_updates (client_id, date_updated, conversation_id, version, date_created, uploaded_at, head, tail)
        SELECT '${client}', date_updated, conversation_id, version, date_created, uploaded_at, head, tail
        FROM bench_stage ORDER BY n ${block}`,
      );
    }
    await runSql(
      url,
      `INSERT INTO conversations (client_id, date_created, conversation_id, version, exported_at, uploaded_at, date_updated, language, head, tail)
      SELECT '${client}', date_created, conversation_id, version, exported_at, uploaded_at, date_updated, 'en', head, tail
      FROM bench_stage ORDER BY n ${block}`,
    );
    onProgress(`export ${round + 1} of ${exports} of ${conversations} conversations is in the warehouse`);
  }
  await runSql(url, "DROP TABLE bench_stage");
};

/** Waits until no merge runs, so that all measurements see the same parts. */
export const mergesIdle = async (url: string): Promise<void> => {
  for (let quiet = 0; quiet < 5; ) {
    const { text } = await runSql(url, "SELECT count() FROM system.merges");
    quiet = text.trim() === "0" ? quiet + 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
};
