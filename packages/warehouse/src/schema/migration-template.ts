/** Servers that hold the tables: one server, or a cluster with local tables behind distributed ones. */
export type Topology = {
  /** Name of the cluster in `remote_servers`; null: a single server. */
  readonly cluster: string | null;
  /**
   * For a cluster without Keeper: one address per shard, `http://host:port`. Its tables are not replicated,
   * and each shard gets every statement itself. Absent: `ON CLUSTER` reaches all servers, and tables are
   * replicated.
   */
  readonly shards?: readonly string[];
};

/**
 * The `ON CLUSTER` clause behind the name of a table or database; empty when only the addressed server is
 * meant.
 */
export const onCluster = ({ cluster, shards }: Topology): string =>
  cluster === null || shards !== undefined ? "" : `ON CLUSTER '${cluster}'`;

function renderTag(tag: string, topology: Topology): string {
  const { cluster, shards } = topology;
  const [word, ...rest] = tag.trim().split(/\s+/);
  const argument = rest.join(" ");
  const on = onCluster(topology) === "" ? "" : ` ${onCluster(topology)}`;
  switch (word) {
    case "local":
      return cluster === null ? argument : `${argument}_local`;
    case "reached":
      return cluster === null || shards === undefined ? argument : `${argument}_local`;
    case "on":
      return onCluster(topology);
    case "engine":
      return cluster === null || shards !== undefined ? argument : `Replicated${argument}`;
    case "alter": {
      const [table = "", ...action] = rest;
      const tables = cluster === null ? [table] : [`${table}_local`, table];
      return tables.map((name) => `ALTER TABLE ${name}${on} ${action.join(" ")}`).join(";\n");
    }
    case "drop": {
      const tables = cluster === null ? [argument] : [argument, `${argument}_local`];
      // Servers refuse to drop large tables otherwise.
      return tables
        .map((name) => `DROP TABLE IF EXISTS ${name}${on} SYNC SETTINGS max_table_size_to_drop = 0`)
        .join(";\n");
    }
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
 * Renders a migration file to statements. A statement ends with `;` at the end of a line. Tags:
 * `{{local T}}` the table that holds the rows, `{{on cluster}}` the clause `ON CLUSTER`,
 * `{{reached T}}` the table to fill: where each shard gets every statement itself, the rows of that shard,
 * else all rows,
 * `{{engine E}}` the engine, replicated where there is Keeper,
 * `{{distributed T by EXPRESSION}}` a statement that creates the distributed table, on a cluster only,
 * `{{drop T}}` a statement that drops a table, on a cluster both,
 * `{{alter T ACTION}}` a change of columns, on a cluster of the distributed table too.
 *
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
