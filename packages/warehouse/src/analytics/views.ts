/**
 * Views for analysts in a database of their own: one row for each live record. They run with the migrator's
 * rights, so readers need none on tables.
 */
import { onCluster, type Topology } from "../schema/migration-template.ts";
import { isLive, isLiveHandoff, type ViewTables } from "./left-out-sql.ts";
import {
  CONVERSATION_COLUMNS,
  CONVERSATION_DOCUMENTS,
  DAILY_COLUMNS,
  type Documents,
  END_USER_COLUMNS,
  HANDOFF_COLUMNS,
  MESSAGE_COLUMNS,
  RECORD_DOCUMENTS,
  sqlText,
  type ViewColumn,
} from "./view-columns.ts";

export type AnalyticsView = {
  readonly name: string;
  readonly comment: string;
  readonly columns: readonly ViewColumn[];
  /** What names a row, together. */
  readonly key: readonly string[];
};

type Definition = AnalyticsView & {
  readonly documents?: Documents;
  /** SQL from FROM on, of rows `r`. @param view full name of another view */
  readonly from: (tables: ViewTables, view: (name: string) => string) => string;
};

const DEFINITIONS: readonly Definition[] = [
  {
    name: "conversations",
    comment: "One row for each conversation, as it was exported last",
    columns: CONVERSATION_COLUMNS,
    documents: CONVERSATION_DOCUMENTS,
    key: ["client_id", "conversation_id"],
    from: (tables) =>
      `FROM ${tables.table("conversations")} AS r FINAL WHERE ${isLive("conversation", tables)}`,
  },
  {
    name: "messages",
    comment: "One row for each message, as it was exported last",
    columns: MESSAGE_COLUMNS,
    documents: RECORD_DOCUMENTS,
    key: ["client_id", "message_id"],
    from: (tables) => `FROM ${tables.table("messages")} AS r FINAL WHERE ${isLive("message", tables)}`,
  },
  {
    name: "end_users",
    comment: "One row for each end user, as it was exported last",
    columns: END_USER_COLUMNS,
    documents: RECORD_DOCUMENTS,
    key: ["client_id", "end_user_id"],
    from: (tables) => `FROM ${tables.table("end_users")} AS r FINAL WHERE ${isLive("end_user", tables)}`,
  },
  {
    name: "handoffs",
    comment: "One row for the latest attempt of each handoff of a conversation",
    columns: HANDOFF_COLUMNS,
    key: ["client_id", "conversation_id", "id", "handoff_id"],
    from: (tables) => `FROM ${tables.table("handoffs")} AS r FINAL WHERE ${isLiveHandoff(tables)}`,
  },
  {
    name: "conversation_daily",
    comment: "One row for each client and day with conversations, in UTC, without those of test users",
    columns: DAILY_COLUMNS,
    key: ["client_id", "day"],
    from: (_, view) =>
      `FROM ${view("conversations")} AS r WHERE NOT ifNull(r.is_test_user, false) GROUP BY r.client_id, day`,
  },
];

/** The views in the order in which they are made. */
export const ANALYTICS_VIEWS: readonly AnalyticsView[] = DEFINITIONS;

/** The database of the views that belongs to one of tables. */
export const analyticsDatabase = (database: string): string => `${database}_analytics`;

/**
 * Statements that create or replace the database and the views; they hold no data.
 * @param database of the tables
 * @param about `knowsLogin`: whether the server has the function `authenticatedUser`
 */
export const analyticsStatements = (
  database: string,
  topology: Topology,
  { knowsLogin }: Pick<ViewTables, "knowsLogin">,
): readonly string[] => {
  const own = analyticsDatabase(database);
  const on = onCluster(topology);
  const view = (name: string): string => `${own}.${name}`;
  const tables: ViewTables = {
    table: (name) => `${database}.${name}`,
    global: topology.cluster === null ? "" : "GLOBAL ",
    knowsLogin,
  };
  return [
    `CREATE DATABASE IF NOT EXISTS ${own} ${on}`,
    ...DEFINITIONS.map(({ name, comment, columns, documents = {}, from }) => {
      const named = Object.entries(documents).map(([alias, sql]) => `${sql} AS ${alias}`);
      const declared = columns.map((one) => `${one.name} ${one.type} COMMENT ${sqlText(one.comment)}`);
      const selected = columns.map((one) => `${one.sql} AS ${one.name}`);
      return `CREATE OR REPLACE VIEW ${view(name)} ${on} (
  ${declared.join(",\n  ")}
) DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS ${named.length === 0 ? "" : `WITH ${named.join(",\n  ")}\n`}SELECT
  ${selected.join(",\n  ")}
${from(tables, view)}
COMMENT ${sqlText(comment)}`;
    }),
  ];
};
