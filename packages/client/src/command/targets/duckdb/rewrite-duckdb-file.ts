import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { CopyError, isSystemError } from "../../exit-code.ts";
import { type DuckDbFile, quoted } from "./duckdb-file.ts";
import { inMaking } from "./new-duckdb-file.ts";
import { publishFile, syncFile } from "../durable-file.ts";

const named = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const qualified = (schema: unknown, table: unknown): string =>
  `${named(String(schema))}.${named(String(table))}`;

const tablesOf = async ({ rows }: Pick<DuckDbFile, "rows">): Promise<string[]> => {
  const found = await rows(
    "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = current_database()",
  );
  return found.map(([schema, table]) => qualified(schema, table));
};

/** By table: those that its foreign keys name. */
const parentsOf = async ({ rows }: Pick<DuckDbFile, "rows">): Promise<ReadonlyMap<string, string[]>> => {
  const parents = new Map<string, string[]>();
  for (const [schema, table, parent] of await rows(
    `SELECT schema_name, table_name, referenced_table FROM duckdb_constraints()
      WHERE database_name = current_database() AND constraint_type = 'FOREIGN KEY'`,
  )) {
    const of = qualified(schema, table);
    parents.set(of, [...(parents.get(of) ?? []), qualified(schema, parent)]);
  }
  return parents;
};

const parentsFirst = (tables: readonly string[], parents: ReadonlyMap<string, string[]>): Set<string> => {
  const ordered = new Set<string>();
  const seen = new Set<string>();
  const visit = (table: string): void => {
    if (seen.has(table)) return;
    seen.add(table);
    parents.get(table)?.forEach(visit);
    ordered.add(table);
  };
  tables.forEach(visit);
  return ordered;
};

const copyTables = async (
  file: Pick<DuckDbFile, "rows">,
  { from, to, tables }: { from: string; to: string; tables: readonly string[] },
): Promise<void> => {
  const { rows } = file;
  const parents = await parentsOf(file);
  if (parents.size === 0) {
    await rows(`COPY FROM DATABASE ${from} TO ${to}`);
    return;
  }
  // It would copy rows before those that their foreign keys name.
  await rows(`COPY FROM DATABASE ${from} TO ${to} (SCHEMA)`);
  for (const of of parentsFirst(tables, parents))
    await rows(`INSERT INTO ${to}.${of} SELECT * FROM ${from}.${of}`).catch((error: unknown) => {
      if (isSystemError(error)) throw error;
      const [said] = String(error instanceof Error ? error.message : error).split("\n");
      throw new CopyError(`copying the table ${of} failed: ${said}. Keep it in another file`);
    });
};

/** Deleted rows stay in free blocks, so all is copied; afterwards only close the old file. */
export const rewriteDuckDbFile = async (file: DuckDbFile): Promise<void> => {
  const { path, rows } = file;
  const made = inMaking(path);
  const name = named(`new ${randomUUID()}`);
  try {
    await rows("CHECKPOINT");
    const [[own] = []] = await rows("SELECT current_database()");
    const old = named(String(own));
    await rows(`ATTACH ${quoted(made)} AS ${name}`);
    const tables = await tablesOf(file);
    await copyTables(file, { from: old, to: name, tables });
    for (const of of tables) {
      const sql = `SELECT (SELECT count(*) FROM ${old}.${of}) = (SELECT count(*) FROM ${name}.${of})`;
      if ((await rows(sql))[0]?.[0] !== true) throw new Error(`${made} has not the rows of ${of}`);
    }
    await rows(`CHECKPOINT ${name}`);
    await rows(`DETACH ${name}`);
    await syncFile(made);
    // The log now belongs to the new file.
    await rows("PRAGMA disable_checkpoint_on_shutdown");
    await publishFile(made, path);
  } finally {
    for (const rest of ["", ".wal"]) await rm(`${made}${rest}`, { force: true });
  }
};
