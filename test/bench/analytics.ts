import type { System } from "../system/system.ts";
import { VIEWS } from "../warehouse/view-rows.ts";
import { ANALYTICS_CLIENT, fillAnalytics, moveSome } from "./analytics-data.ts";
import { processorTimes } from "./processor-time.ts";
import type { Result } from "./report.ts";
import { runSql } from "./warehouse-http.ts";
import { mergesIdle } from "./window-data.ts";

type Sources = {
  /** What follows FROM. */
  readonly conversations: string;
  readonly handoffs: string;
};

const RAW: Sources = {
  conversations: "conversations FINAL WHERE true",
  // Rows without an entry are references.
  handoffs: "handoffs FINAL WHERE notEmpty(entry)",
};
const OF_VIEWS: Sources = {
  conversations: `${VIEWS}.conversations WHERE true`,
  handoffs: `${VIEWS}.handoffs WHERE true`,
};

/** Questions of those who manage support; the columns have the same names in tables and views. */
const QUESTIONS: Readonly<Record<string, (from: Sources) => string>> = {
  volume: ({ conversations }) =>
    `SELECT toDate(date_created) AS day, platform, count() FROM ${conversations} GROUP BY day, platform`,
  containment: ({ conversations }) =>
    `SELECT language, countIf(is_engaged AND NOT is_escalated) / countIf(is_engaged)
    FROM ${conversations} AND NOT ifNull(is_test_user, false) GROUP BY language`,
  csat: ({ conversations }) =>
    `SELECT generated_topic_label, avg(csat_score), count(csat_score) FROM ${conversations} GROUP BY generated_topic_label`,
  one_day: ({ conversations }) =>
    `SELECT platform, count() FROM ${conversations} AND client_id = '${ANALYTICS_CLIENT}'
    AND date_created >= '2026-06-03' AND date_created < '2026-06-04' GROUP BY platform`,
  handoffs_by_reason: ({ handoffs }) => `SELECT reason_code, count() FROM ${handoffs} GROUP BY reason_code`,
  time_to_hand_off: ({ handoffs }) =>
    `SELECT median(dateDiff('second', conversation_date_created, date_created)) FROM ${handoffs}`,
};

const ROUNDS = { rounds: 7, warm: 2, calls: 1 };

/**
 * What common questions cost on the views for analysts beside the same on the tables with FINAL, which count
 * a record that has moved twice.
 */
export const benchAnalytics = async (
  system: System,
  conversations: number,
  log: (line: string) => void,
): Promise<Result[]> => {
  const { clickhouse } = system.stack;
  const url = clickhouse.url("migrator");
  await fillAnalytics(url, conversations, log);
  await mergesIdle(url);
  const ask = (user: "reader" | "analyst", question: (from: Sources) => string, from: Sources) => () =>
    runSql(clickhouse.url(user), question(from));
  const measure = async (): Promise<ReadonlyMap<string, readonly [ours: number, peer: number]>> => {
    const times = new Map<string, readonly [number, number]>();
    for (const [name, question] of Object.entries(QUESTIONS)) {
      const [ours = Number.NaN, peer = Number.NaN] = await processorTimes({ url, ...ROUNDS }, [
        ask("analyst", question, OF_VIEWS),
        ask("reader", question, RAW),
      ]);
      times.set(name, [ours, peer]);
      log(`${name}: ${ours.toFixed(0)} ms of processor time on views, ${peer.toFixed(0)} ms on tables`);
    }
    return times;
  };
  const times = await measure();
  const sum = (index: 0 | 1): number => [...times.values()].reduce((all, pair) => all + pair[index], 0);
  const goals: [string, readonly [number, number]][] = [...times, ["all", [sum(0), sum(1)]]];
  await runSql(
    url,
    `INSERT INTO hidden_records (client_id, kind, value, created_before, request_id)
    SELECT '${ANALYTICS_CLIENT}', 'chatter_id', lower(hex(cityHash64(number, 2))), now64(6), 'bench' FROM numbers(100)`,
  );
  log("with 100 hidden persons:");
  await measure();
  await runSql(url, "TRUNCATE TABLE hidden_records");
  await moveSome(url);
  await mergesIdle(url);
  log("with one conversation in 1,000 that has moved:");
  await measure();
  return goals.map(([name, [ours, peer]]) => {
    const ratio = ours / peer;
    return { name: `views_vs_final_${name}`, ours, peer, ratio, goal: "<=1.3", reached: ratio <= 1.3 };
  });
};
