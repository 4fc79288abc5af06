import { mkdir, readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBAppender, DuckDBValue } from "@duckdb/node-api";
import { LISTS, type ListName } from "../../../lists/kinds.ts";
import { CopyError, isSystemError, UsageError } from "../../exit-code.ts";

export type DuckDbFile = {
  readonly path: string;
  /** For lines not loaded yet, and for DuckDB's spill files. */
  readonly parts: string;
  rows(sql: string, values?: DuckDBValue[]): Promise<DuckDBValue[][]>;
  stream(sql: string): AsyncGenerator<DuckDBValue[], void>;
  append(table: string, fill: (appender: DuckDBAppender) => void | Promise<void>): Promise<void>;
  inTransaction(work: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
};

type Of = { readonly list: ListName; readonly table: string; readonly fields: readonly string[] | null };

export type Layout = {
  readonly name: "duckdb" | "parquet" | "csv";
  tablesOf(table: string): readonly string[];
  countSql(table: string): string;
  /** Also adds columns that an older copy lacks. */
  prepare(file: DuckDbFile, of: Of): Promise<void>;
  /** Returns changed rows. */
  load(file: DuckDbFile, of: Of & { readonly path: string }): Promise<number>;
};

/** A text in SQL. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** The last: spill files are limited to nine tenths of the free space. */
const FULL = /No space left on device|Disk quota exceeded|failed to offload data block/i;

/** They quote the value, which must not reach a log. */
const ABOUT_VALUE = /^(Invalid Input|Conversion|Out of Range|Constraint) Error/;

const reported = (error: unknown): unknown => {
  if (!(error instanceof Error)) return error;
  if (FULL.test(error.message))
    return Object.assign(new Error(`no space: ${error.message.split("\n")[0]}`), { code: "ENOSPC" });
  const [about] = ABOUT_VALUE.exec(error.message) ?? [];
  return about === undefined ? error : new Error(`DuckDB refused a value of a record: ${about}`);
};

const reporting = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw reported(error);
  }
};

const OWN_PART = new RegExp(
  String.raw`^(?:(?:${LISTS.join("|")})[-.\w]*\.(?:ndjson|parquet|csv)(?:\.tmp)?|duckdb_temp_.*)$`,
);

const sweepParts = async (parts: string): Promise<void> => {
  for (const name of await readdir(parts).catch((): string[] => []))
    if (OWN_PART.test(name)) await rm(join(parts, name), { recursive: true, force: true });
  // Files of others keep the folder.
  await rmdir(parts).catch(() => undefined);
};

/** @throws CopyError, UsageError */
export const openDuckDbFile = async (
  file: string,
  settings: Readonly<Record<string, string>>,
): Promise<DuckDbFile> => {
  const { DuckDBInstance } = await import("@duckdb/node-api").catch(() => {
    throw new UsageError(
      "duckdb:, parquet: and csv: need the package @duckdb/node-api, which is not installed",
    );
  });
  const parts = `${file}.parts`;
  const config = {
    ...settings,
    temp_directory: parts,
    // Otherwise DuckDB would open a SQLite file with an extension and write into it.
    autoinstall_known_extensions: "false",
    extension_directory: parts,
  };
  const instance = await DuckDBInstance.create(file, config).catch((error: unknown) => {
    const known = reported(error);
    if (isSystemError(known)) throw known;
    const [said = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    const remedy = /lock/i.test(said) ? "" : ". Put its last whole copy back, or move it away and pull again";
    throw new CopyError(`opening ${file} failed: ${said}${remedy}`);
  });
  // Only an open instance is the lock.
  await sweepParts(parts);
  await mkdir(parts, { recursive: true });
  const connection = await instance.connect();
  const rows = (sql: string, values: DuckDBValue[] = []): Promise<DuckDBValue[][]> =>
    reporting(async () => (await connection.runAndReadAll(sql, values)).getRows());
  return {
    path: file,
    parts,
    rows,
    stream: async function* (sql) {
      try {
        for await (const chunk of (await connection.stream(sql)).yieldRows()) yield* chunk;
      } catch (error) {
        throw reported(error);
      }
    },
    append: (table, fill) =>
      reporting(async () => {
        const appender = await connection.createAppender(table);
        await fill(appender);
        appender.closeSync();
      }),
    inTransaction: async (work) => {
      await rows("BEGIN");
      try {
        await work();
        await rows("COMMIT");
      } catch (error) {
        await rows("ROLLBACK").catch(() => undefined);
        throw error;
      }
    },
    close: async () => {
      connection.closeSync();
      // While the instance is the lock: then the folder may be another process's.
      await sweepParts(parts).finally(() => instance.closeSync());
    },
  };
};
