import { FIELDS } from "../../../interface/fields.ts";
import { KINDS, type ListName } from "../../../lists/kinds.ts";
import { wellFormed } from "../../../lists/json-parts.ts";
import { idOf, isDeletion } from "../../line.ts";
import { type DuckDbFile, type Layout, quoted } from "./duckdb-file.ts";
import { readSegment } from "../segment-file.ts";

type Kind = "text" | "number" | "integer" | "boolean" | "instant" | "json";
const TYPES = {
  text: "VARCHAR",
  number: "DOUBLE",
  integer: "BIGINT",
  boolean: "BOOLEAN",
  instant: "TIMESTAMP",
  json: "JSON",
} as const satisfies Record<Kind, string>;

type Column = { readonly name: string; readonly kind: Kind };

const columnsOf = (list: ListName, fields: readonly string[] | null): readonly Column[] =>
  Object.entries<Kind>(FIELDS[list])
    .filter(([name]) => name === KINDS[list].id || fields === null || fields.includes(name))
    .map(([name, kind]) => ({ name, kind }));

const createTable = (table: string, columns: readonly Column[]): string =>
  `CREATE TABLE IF NOT EXISTS ${table} (${columns.map(({ name, kind }) => `"${name}" ${TYPES[kind]}`).join(", ")}, record JSON)`;

/** DuckDB prints JSON anew: 1.10 becomes 1.1. */
const structureOf = (columns: readonly Column[]): string =>
  JSON.stringify(
    Object.fromEntries(columns.map(({ name, kind }) => [name, kind === "instant" ? "VARCHAR" : TYPES[kind]])),
  );

const valueOf = ({ name, kind }: Column): string => {
  if (kind === "json") return `nullif(fields."${name}", 'null'::JSON)`;
  return kind === "instant" ? `TRY_CAST(fields."${name}" AS TIMESTAMP)` : `fields."${name}"`;
};

const fillStage = async ({ rows, append }: DuckDbFile, path: string): Promise<void> => {
  await rows(
    "CREATE OR REPLACE TEMP TABLE stage (place INTEGER, id VARCHAR, record VARCHAR, deleted BOOLEAN)",
  );
  await append("stage", async (appender) => {
    let place = 0;
    for await (const line of readSegment(path, "plain")) {
      appender.appendInteger(place);
      appender.appendVarchar(idOf(line));
      appender.appendVarchar(wellFormed(line));
      appender.appendBoolean(isDeletion(line));
      appender.endRow();
      place += 1;
    }
  });
};

export const DUCKDB_LAYOUT: Layout = {
  name: "duckdb",
  tablesOf: (table) => [table],
  countSql: (table) => `SELECT count(*) FROM ${table}`,
  prepare: async ({ rows }, { list, table, fields }) => {
    const columns = columnsOf(list, fields);
    await rows(createTable(table, columns));
    for (const { name, kind } of columns)
      await rows(`ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS "${name}" ${TYPES[kind]}`);
  },
  load: async (file, { list, table, fields, path }) => {
    const { rows } = file;
    const columns = columnsOf(list, fields);
    await fillStage(file, path);
    await rows("DELETE FROM stage WHERE place NOT IN (SELECT max(place) FROM stage GROUP BY id)");
    const [[count] = []] = await rows("SELECT count(*) FROM stage");
    await rows(`DELETE FROM ${table} WHERE ${KINDS[list].id} IN (SELECT id FROM stage)`);
    const names = columns.map(({ name }) => `"${name}"`).join(", ");
    await rows(`INSERT INTO ${table} (${names}, record) SELECT ${columns.map(valueOf).join(", ")}, record FROM
      (SELECT json_transform(record, ${quoted(structureOf(columns))}) AS fields, record FROM stage WHERE NOT deleted)`);
    await rows("DROP TABLE stage");
    return Number(count ?? 0);
  },
};
