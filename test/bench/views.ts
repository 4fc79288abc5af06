import { VIEWS } from "../warehouse/view-rows.ts";
import { costOf, inPairs } from "./pairs.ts";
import type { Reading } from "./reading.ts";
import { resultOf, type Result } from "./report.ts";
import { runSql } from "./warehouse-http.ts";
import { LATE } from "./window-data.ts";

type Sources = { readonly conversations: string; readonly handoffs: string };

const TABLES: Sources = {
  conversations: "conversations FINAL WHERE true",
  // Rows without an entry are references.
  handoffs: "handoffs FINAL WHERE notEmpty(entry)",
};
const OF_VIEWS: Sources = {
  conversations: `${VIEWS}.conversations WHERE true`,
  handoffs: `${VIEWS}.handoffs WHERE true`,
};

const questions = ({ conversations, handoffs }: Sources): readonly string[] => [
  `SELECT toDate(date_created) AS day, platform, count() FROM ${conversations} GROUP BY day, platform`,
  `SELECT language, countIf(is_engaged AND NOT is_escalated) / countIf(is_engaged)
    FROM ${conversations} AND NOT ifNull(is_test_user, false) GROUP BY language`,
  `SELECT generated_topic_label, avg(csat_score), count(csat_score) FROM ${conversations} GROUP BY generated_topic_label`,
  `SELECT platform, count() FROM ${conversations} AND client_id = '${LATE}'
    AND date_created >= '2026-06-03' AND date_created < '2026-06-04' GROUP BY platform`,
  `SELECT reason_code, count() FROM ${handoffs} GROUP BY reason_code`,
  `SELECT median(dateDiff('second', conversation_date_created, date_created)) FROM ${handoffs}`,
];

/** The tables count a moved record twice. */
export const benchViews = async ({ system, server }: Reading): Promise<Result[]> => {
  const { clickhouse } = system.stack;
  const ask = (user: "analyst" | "reader", from: Sources) =>
    costOf({ processes: server }, async () => {
      for (const question of questions(from)) await runSql(clickhouse.url(user), question);
    });
  return [
    resultOf("views", "ms", await inPairs(ask("analyst", OF_VIEWS), ask("reader", TABLES), { warm: 1 })),
  ];
};
