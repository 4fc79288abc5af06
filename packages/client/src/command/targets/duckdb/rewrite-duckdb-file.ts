import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { type DuckDbFile, quoted } from "./duckdb-file.ts";
import { inMaking } from "./new-duckdb-file.ts";
import { publishFile, syncFile } from "../durable-file.ts";

const named = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Deleted rows stay in free blocks, so all is copied; afterwards only close the old file. */
export const rewriteDuckDbFile = async ({ path, rows }: DuckDbFile): Promise<void> => {
  const made = inMaking(path);
  const name = named(`new ${randomUUID()}`);
  try {
    await rows("CHECKPOINT");
    const [[own] = []] = await rows("SELECT current_database()");
    const old = named(String(own));
    await rows(`ATTACH ${quoted(made)} AS ${name}`);
    await rows(`COPY FROM DATABASE ${old} TO ${name}`);
    for (const [schema, table] of await rows(
      "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = current_database()",
    )) {
      const of = `${named(String(schema))}.${named(String(table))}`;
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
