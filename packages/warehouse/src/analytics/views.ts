/** Views have the migrator's rights; readers need none on tables (docs/decisions/0026). */
import { KIND_NAMES, ownTableOf } from "@conversation-export/domain";
import { onCluster, type Topology } from "../schema/migration-template.ts";
import { sqlText } from "../session/sql-text.ts";
import { isLive, isLiveHandoff, type ViewTables } from "./left-out-sql.ts";
import {
  columnsOfKind,
  DAILY_COLUMNS,
  type Documents,
  documentsOf,
  HANDOFF_COLUMNS,
  type ViewColumn,
} from "./view-columns.ts";

export type AnalyticsView = {
  readonly name: string;
  readonly comment: string;
  readonly columns: readonly ViewColumn[];
  readonly key: readonly string[];
};

type Definition = AnalyticsView & {
  readonly documents?: Documents;
  readonly from: (tables: ViewTables, view: (name: string) => string) => string;
};

const DEFINITIONS: readonly Definition[] = [
  ...KIND_NAMES.map((kind): Definition => {
    const { name, id } = ownTableOf(kind);
    return {
      name,
      comment: `One row for each ${kind.replace("_", " ")}, as it was exported last`,
      columns: columnsOfKind(kind),
      documents: documentsOf(kind),
      key: ["client_id", id],
      from: (tables) => `FROM ${tables.table(name)} AS r FINAL WHERE ${isLive(kind, tables)}`,
    };
  }),
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

export const ANALYTICS_VIEWS: readonly AnalyticsView[] = DEFINITIONS;

export const analyticsDatabase = (database: string): string => `${database}_analytics`;

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
