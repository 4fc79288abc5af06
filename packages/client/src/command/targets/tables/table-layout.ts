import { createHash } from "node:crypto";
import type { DuckDBAppender } from "@duckdb/node-api";
import { KINDS, type ListName } from "../../../lists/kinds.ts";
import { entryOf } from "../../digests.ts";
import { idOf, isDeletion, recordOf } from "../../line.ts";
import type { DuckDbFile, Layout } from "../duckdb/duckdb-file.ts";
import { readSegment } from "../segment-file.ts";
import {
  type Cell,
  cellName,
  cellsOf,
  type TableColumn,
  type TableFormat,
  tableColumns,
} from "./table-columns.ts";

/** DuckDB reads 2,048 rows at a time whatever their size; longer records are kept in pieces. */
const LARGE_BYTES = 16 * 1024;
const PART_BYTES = 16 * 1024 * 1024;

export const piecesOf = (table: string): string => `${table}_pieces`;

export const columnValues = (columns: readonly TableColumn[]): string =>
  columns.map(({ name, value }) => `${value} AS "${name}"`).join(", ");

const cellsIn = (columns: readonly TableColumn[]): readonly Cell[] => columns.flatMap(({ cells }) => cells);

export const makeStage = async ({ rows }: DuckDbFile, columns: readonly TableColumn[]): Promise<void> => {
  const cells = cellsIn(columns).map((cell) => `${cellName(cell)} VARCHAR`);
  await rows(`CREATE OR REPLACE TEMP TABLE stage
    (place INTEGER, id VARCHAR, deleted BOOLEAN, is_large BOOLEAN, pull_digest VARCHAR, text_digest VARCHAR, ${cells.join(", ")})`);
  await rows(
    "CREATE OR REPLACE TEMP TABLE stage_pieces (place INTEGER, part INTEGER, n INTEGER, piece VARCHAR)",
  );
};

type Staged = {
  readonly place: number;
  readonly id: string;
  /** Of values; empty where none is kept. */
  readonly digest: string;
  /** Of the text: JavaScript takes some different numbers for equal. */
  readonly textDigest: string;
  readonly isDeleted: boolean;
  readonly isLarge: boolean;
};

const appendRow = (
  appender: DuckDBAppender,
  { place, id, digest, textDigest, isDeleted, isLarge }: Staged,
  texts: readonly (string | null)[],
): void => {
  appender.appendInteger(place);
  appender.appendVarchar(id);
  appender.appendBoolean(isDeleted);
  appender.appendBoolean(isLarge);
  appender.appendVarchar(digest);
  appender.appendVarchar(textDigest);
  for (const text of texts) {
    if (text === null) appender.appendNull();
    else appender.appendVarchar(text);
  }
  appender.endRow();
};

/** Without a line the cells stay empty. */
type Staging = (row: Staged, line: string | null) => void;

export const fillStage = (
  file: DuckDbFile,
  columns: readonly TableColumn[],
  fill: (stage: Staging) => Promise<void>,
): Promise<void> => {
  const cells = cellsIn(columns);
  const none = cells.map(() => null);
  return file.append("stage", (appender) =>
    fill((row, line) => appendRow(appender, row, line === null ? none : cellsOf(line, cells))),
  );
};

type Lines = { readonly path: string; readonly list: ListName; readonly fields: readonly string[] | null };

const stageLines = async (of: Lines, stage: Staging, pieces: DuckDBAppender): Promise<void> => {
  let place = 0;
  let largeBytes = 0;
  for await (const line of readSegment(of.path, "plain")) {
    const isDeleted = isDeletion(line);
    const isLarge = !isDeleted && line.length > LARGE_BYTES / 4 && Buffer.byteLength(line) > LARGE_BYTES;
    const digest = isDeleted ? "" : entryOf(recordOf(line), of.list, of.fields).digest;
    const textDigest = isDeleted ? "" : createHash("md5").update(line).digest("base64");
    const row = { place, id: idOf(line), digest, textDigest, isDeleted, isLarge };
    stage(row, isDeleted || isLarge ? null : line);
    if (isLarge) {
      const bytes = Buffer.from(line).toString("base64");
      for (let n = 0; n * LARGE_BYTES < bytes.length; n += 1) {
        pieces.appendInteger(place);
        pieces.appendInteger(Math.floor(largeBytes / PART_BYTES));
        pieces.appendInteger(n);
        pieces.appendVarchar(bytes.slice(n * LARGE_BYTES, (n + 1) * LARGE_BYTES));
        pieces.endRow();
      }
      largeBytes += bytes.length;
    }
    place += 1;
  }
};

const stageSegment = async (file: DuckDbFile, columns: readonly TableColumn[], of: Lines): Promise<void> => {
  await makeStage(file, columns);
  await file.append("stage_pieces", (pieces) =>
    fillStage(file, columns, (stage) => stageLines(of, stage, pieces)),
  );
};

export const tableLayout = (format: TableFormat): Layout => ({
  name: format,
  tablesOf: (table) => [table, piecesOf(table)],
  countSql: (table) =>
    `SELECT (SELECT count(*) FROM ${table}) + (SELECT count(*) FROM ${piecesOf(table)} WHERE n = 0)`,
  prepare: async ({ rows }, { list, table, fields }) => {
    await rows(`CREATE TABLE IF NOT EXISTS ${table} (pull_digest VARCHAR, text_digest VARCHAR)`);
    for (const { name, type } of tableColumns(format, list, fields))
      await rows(`ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS "${name}" ${type}`);
    await rows(`CREATE TABLE IF NOT EXISTS ${piecesOf(table)}
      (id VARCHAR, part INTEGER, n INTEGER, pull_digest VARCHAR, text_digest VARCHAR, piece VARCHAR)`);
  },
  load: async (file, { list, table, fields, path }) => {
    const { rows } = file;
    const columns = tableColumns(format, list, fields);
    const id = KINDS[list].id;
    const pieces = piecesOf(table);
    await stageSegment(file, columns, { path, list, fields });
    const changed = async (sql: string): Promise<number> => Number((await rows(sql))[0]?.[0] ?? 0);
    await rows("DELETE FROM stage WHERE place NOT IN (SELECT max(place) FROM stage GROUP BY id)");
    // Unchanged records must not rewrite the file.
    await rows(`DELETE FROM stage WHERE NOT deleted AND (id, text_digest) IN
      (SELECT (${id}, text_digest) FROM ${table} UNION ALL SELECT (id, text_digest) FROM ${pieces} WHERE n = 0)`);
    const counts = [
      await changed(`DELETE FROM ${table} WHERE ${id} IN (SELECT id FROM stage)`),
      await changed(`DELETE FROM ${pieces} WHERE id IN (SELECT id FROM stage)`),
      await changed(`INSERT INTO ${table} (pull_digest, text_digest, ${columns.map(({ name }) => `"${name}"`).join(", ")})
        SELECT pull_digest, text_digest, ${columnValues(columns)} FROM stage WHERE NOT deleted AND NOT is_large ORDER BY place`),
      await changed(`INSERT INTO ${pieces}
        SELECT id, part + (SELECT coalesce(max(part), 0) + 1 FROM ${pieces}), n, pull_digest, text_digest, piece
        FROM stage JOIN stage_pieces USING (place) ORDER BY place, n`),
    ];
    await rows("DROP TABLE stage");
    await rows("DROP TABLE stage_pieces");
    return counts.reduce((sum, count) => sum + count, 0);
  },
});

/** Each fits in memory. */
export const largeGroups = async (
  { rows }: DuckDbFile,
  table: string,
): Promise<readonly { readonly first: number; readonly last: number }[]> => {
  const groups: { first: number; last: number; bytes: number }[] = [];
  for (const [part, bytes] of await rows(
    `SELECT part, sum(strlen(piece)) FROM ${piecesOf(table)} GROUP BY part ORDER BY part`,
  )) {
    const group = groups.at(-1);
    const size = Number(bytes);
    if (group !== undefined && group.bytes + size <= PART_BYTES) {
      group.last = Number(part);
      group.bytes += size;
    } else groups.push({ first: Number(part), last: Number(part), bytes: size });
  }
  return groups;
};

export async function* largeLines(
  { stream }: DuckDbFile,
  table: string,
  { first, last }: { readonly first: number; readonly last: number },
): AsyncGenerator<{ readonly id: string; readonly line: string }, void> {
  const sql = `SELECT id, piece FROM ${piecesOf(table)} WHERE part BETWEEN ${first} AND ${last} ORDER BY part, id, n`;
  let id: string | undefined;
  let parts: string[] = [];
  const whole = (): string => Buffer.from(parts.join(""), "base64").toString();
  for await (const [of, piece] of stream(sql)) {
    if (id !== undefined && of !== id) {
      yield { id, line: whole() };
      parts = [];
    }
    id = String(of);
    parts.push(String(piece));
  }
  if (id !== undefined) yield { id, line: whole() };
}
