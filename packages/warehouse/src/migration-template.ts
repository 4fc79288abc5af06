/** Where the tables live: one server, or a cluster with replicated local tables behind distributed ones. */
export type Topology = { readonly cluster: string | null };

function renderTag(tag: string, { cluster }: Topology): string {
  const [word, ...rest] = tag.trim().split(/\s+/);
  const argument = rest.join(" ");
  switch (word) {
    case "local":
      return cluster === null ? argument : `${argument}_local`;
    case "on":
      return cluster === null ? "" : `ON CLUSTER '${cluster}'`;
    case "engine":
      return cluster === null ? argument : `Replicated${argument}`;
    case "alter": {
      const [table = "", ...action] = rest;
      const tables = cluster === null ? [table] : [`${table}_local`, table];
      const on = cluster === null ? "" : ` ON CLUSTER '${cluster}'`;
      return tables.map((name) => `ALTER TABLE ${name}${on} ${action.join(" ")}`).join(";\n");
    }
    case "distributed": {
      if (cluster === null) return "";
      const [table = "", key = ""] = argument.split(/ by /);
      return `CREATE TABLE IF NOT EXISTS ${table} ON CLUSTER '${cluster}' AS ${table}_local ENGINE = Distributed('${cluster}', currentDatabase(), '${table}_local', ${key})`;
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
