import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { ListName } from "../../../lists/kinds.ts";
import { type DuckDbFile, quoted } from "../duckdb/duckdb-file.ts";
import { syncFile } from "../durable-file.ts";
import type { TableColumn, TableFormat } from "./table-columns.ts";
import { columnValues, fillStage, largeGroups, largeLines, makeStage } from "./table-layout.ts";

const ROW_GROUP_BYTES = 16 * 1024 * 1024;

/** DuckDB buffers twice as much. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

export type Written = { readonly rows: number; readonly bytes: number; readonly sha256: string };

export type TableToWrite = {
  readonly list: ListName;
  readonly columns: readonly TableColumn[];
  readonly format: TableFormat;
};

/** DuckDB would read a folder named `field=value` as a column. */
const fromParquet = (paths: readonly string[]): string =>
  `read_parquet([${paths.map(quoted).join(", ")}], hive_partitioning = false)`;

const parquetOptions = `FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE_BYTES ${ROW_GROUP_BYTES}`;

const csvOptions = (columns: readonly TableColumn[], hasHeader: boolean): string => {
  const texts = columns.filter(({ isText }) => isText).map(({ name }) => `"${name}"`);
  return `FORMAT csv, HEADER ${hasHeader}, NULLSTR '', FORCE_QUOTE (${texts.join(", ")})`;
};

export const rowsIn = async (
  { rows }: DuckDbFile,
  { columns, format }: TableToWrite,
  path: string,
): Promise<number> => {
  const types = columns.map(({ name }) => `'${name}': 'VARCHAR'`).join(", ");
  const source =
    format === "parquet"
      ? fromParquet([path])
      : `read_csv(${quoted(path)}, auto_detect = false, header = true, delim = ',', quote = '"', escape = '"',
          columns = {${types}}, max_line_size = ${MAX_LINE_BYTES}, buffer_size = ${2 * MAX_LINE_BYTES})`;
  const [[count] = []] = await rows(`SELECT count(*) FROM ${source}`);
  return Number(count ?? 0);
};

export const factsOf = async (path: string): Promise<Omit<Written, "rows">> => {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest("hex") };
};

/** Each file must be small enough to be read at once. */
const writeLarge = async (
  file: DuckDbFile,
  { list, columns, format }: TableToWrite,
): Promise<readonly string[]> => {
  const paths: string[] = [];
  for (const [at, group] of (await largeGroups(file, list)).entries()) {
    await makeStage(file, columns);
    await fillStage(file, columns, async (stage) => {
      let place = 0;
      for await (const { id, line } of largeLines(file, list, group)) {
        stage({ place, id, digest: "", textDigest: "", isDeleted: false, isLarge: true }, line);
        place += 1;
      }
    });
    const path = join(file.parts, `${list}-large-${at}.${format}`);
    const options = format === "csv" ? csvOptions(columns, false) : parquetOptions;
    await file.rows(`COPY (SELECT ${columnValues(columns)} FROM stage) TO ${quoted(path)} (${options})`);
    paths.push(path);
  }
  await file.rows("DROP TABLE IF EXISTS stage");
  return paths;
};

const append = async (path: string, others: readonly string[]): Promise<void> => {
  for (const other of others)
    await pipeline(createReadStream(other), createWriteStream(path, { flags: "a" }));
};

/** The file is synced; rows are unordered, because sorting would need more memory. */
export const writeTable = async (
  file: DuckDbFile,
  table: TableToWrite,
): Promise<Written & { readonly path: string }> => {
  const { list, columns, format } = table;
  const path = join(file.parts, `${list}.${format}`);
  const names = columns.map(({ name }) => `"${name}"`).join(", ");
  const rows = `SELECT ${names} FROM ${list}`;
  const large = await writeLarge(file, table);
  if (format === "csv") {
    await file.rows(`COPY (${rows}) TO ${quoted(path)} (${csvOptions(columns, true)})`);
    await append(path, large);
  } else if (large.length === 0) await file.rows(`COPY (${rows}) TO ${quoted(path)} (${parquetOptions})`);
  else {
    const first = join(file.parts, `${list}-first.parquet`);
    await file.rows(`COPY (${rows}) TO ${quoted(first)} (${parquetOptions})`);
    const all = `SELECT * FROM ${fromParquet([first, ...large])}`;
    await file.rows(`COPY (${all}) TO ${quoted(path)} (${parquetOptions})`);
    await rm(first);
  }
  for (const one of large) await rm(one);
  await syncFile(path);
  return { path, rows: await rowsIn(file, table, path), ...(await factsOf(path)) };
};
