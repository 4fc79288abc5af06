/** Where the tables live: one server, or a cluster with local tables behind distributed ones. */
export type Topology = {
  /** As `remote_servers` of the servers name it; null: a single server. */
  readonly cluster: string | null;
  /**
   * Of a cluster without Keeper one address for each shard, `http://host:port`: its tables are not replicated, and each
   * server is told itself. Absent: `ON CLUSTER` tells all servers, and tables are replicated.
   */
  readonly shards?: readonly string[];
};

/** Behind the name of a table or database: which servers a statement is for, beside the one that gets it. */
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
    case "on":
      return onCluster(topology);
    case "engine":
      return cluster === null || shards !== undefined ? argument : `Replicated${argument}`;
    case "alter": {
      const [table = "", ...action] = rest;
      const tables = cluster === null ? [table] : [`${table}_local`, table];
      return tables.map((name) => `ALTER TABLE ${name}${on} ${action.join(" ")}`).join(";\n");
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
 * The statements of a migration file. Tags: `{{local T}}` the table that holds rows, `{{on cluster}}`,
 * `{{engine E}}`, `{{distributed T by EXPRESSION}}` a statement of its own that exists on a cluster only,
 * `{{alter T ACTION}}` a change of columns, on a cluster of the distributed table too.
 * A statement ends with `;` at the end of a line.
 */
export function renderMigration(template: string, topology: Topology): string[] {
  return template
    .replace(/^\s*--.*$/gm, "")
    .replace(/\{\{(.*?)\}\}/g, (_, tag: string) => renderTag(tag, topology))
    .split(/;[ \t]*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}
