import { BY_HAND_REFUSED, STAMPED } from "../write/stamped.ts";

export type Topology = {
  /** In `remote_servers`; null: a single server. */
  readonly cluster: string | null;
  /** Without Keeper: `http://host:port` of each shard, migrated by itself. */
  readonly shards?: readonly string[];
};

/** Empty: only the addressed server. */
export const onCluster = ({ cluster, shards }: Topology): string =>
  cluster === null || shards !== undefined ? "" : `ON CLUSTER '${cluster}'`;

/** For rows by hand; writers check more (`write/write-ticket.ts`). */
const stampedBy = (column: string): string => `CONSTRAINT stamped CHECK NOT throwIf(
    NOT startsWith(getSetting('log_comment'), '${STAMPED}')
      AND (${column} < now64(6) - INTERVAL 1 SECOND OR ${column} > now64(6) + INTERVAL 10 SECOND),
    '${column} ${BY_HAND_REFUSED}: now64(6)')`;

function renderTag(tag: string, topology: Topology): string {
  const { cluster, shards } = topology;
  const [word, ...rest] = tag.trim().split(/\s+/);
  const argument = rest.join(" ");
  const on = onCluster(topology) === "" ? "" : ` ${onCluster(topology)}`;
  switch (word) {
    case "local":
      return cluster === null ? argument : `${argument}_local`;
    case "on":
      return onCluster(topology);
    case "engine":
      return cluster === null || shards !== undefined ? argument : `Replicated${argument}`;
    case "alter": {
      const [table = "", ...action] = rest;
      const tables = cluster === null ? [table] : [`${table}_local`, table];
      return tables.map((name) => `ALTER TABLE ${name}${on} ${action.join(" ")}`).join(";\n");
    }
    case "stamped":
      return stampedBy(argument);
    case "distributed": {
      if (cluster === null) return "";
      const [table = "", key = ""] = argument.split(/ by /);
      return `CREATE TABLE IF NOT EXISTS ${table}${on} AS ${table}_local ENGINE = Distributed('${cluster}', currentDatabase(), '${table}_local', ${key})`;
    }
    default:
      throw new Error(`unknown tag {{${tag}}} in a migration`);
  }
}

/**
 * Statements end with `;` at a line's end. Tags: `{{local T}}` the table with the rows, `{{on cluster}}`, `{{engine
 * E}}` replicated with Keeper, `{{distributed T by KEY}}`, `{{stamped COLUMN}}` for rows by hand, `{{alter T ACTION}}`
 * of distributed tables too.
 * @throws Error for an unknown tag
 */
export function renderMigration(template: string, topology: Topology): string[] {
  return template
    .replace(/^\s*--.*$/gm, "")
    .replace(/\{\{(.*?)\}\}/g, (_, tag: string) => renderTag(tag, topology))
    .split(/;[ \t]*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}
