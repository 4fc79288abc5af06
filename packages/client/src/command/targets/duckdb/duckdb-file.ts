import { mkdir, readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBAppender, DuckDBValue } from "@duckdb/node-api";
import type { ListName } from "../../../lists/changes.ts";
import { CopyError, isSystemError, UsageError } from "../../exit-code.ts";

/** A file of DuckDB that this process alone has open. */
export type DuckDbFile = {
  readonly path: string;
  /** The folder of what is in work: lines that were not loaded yet, what DuckDB spills. */
  readonly parts: string;
  rows(sql: string, values?: DuckDBValue[]): Promise<DuckDBValue[][]>;
  /** The same a chunk at a time. */
  stream(sql: string): AsyncGenerator<DuckDBValue[], void>;
  /** Adds rows to a table, which has all of them when this returns. */
  append(table: string, fill: (appender: DuckDBAppender) => void | Promise<void>): Promise<void>;
  /** Runs all of it, or none. */
  inTransaction(work: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
};

type Of = { readonly list: ListName; readonly table: string; readonly fields: readonly string[] | null };

/** How records are laid out in tables. */
export type Layout = {
  readonly name: "duckdb" | "parquet" | "csv";
  /** The tables that the records of a table are in. */
  tablesOf(table: string): readonly string[];
  countSql(table: string): string;
  /** Makes the tables, or adds what they lack. */
  prepare(file: DuckDbFile, of: Of): Promise<void>;
  /** Replaces the records that a file of lines names. @returns how many rows changed */
  load(file: DuckDbFile, of: Of & { readonly path: string }): Promise<number>;
};

/** The last: what DuckDB spills may take nine tenths of the room that there was. */
const FULL = /No space left on device|Disk quota exceeded|failed to offload data block/i;

/** DuckDB's errors about a value quote it, and what users wrote is in no log. */
const ABOUT_VALUE = /^(Invalid Input|Conversion|Out of Range) Error/;

/** Only the message of DuckDB's error says that a disk is full. */
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

/** What this command and DuckDB put there. */
const OWN_PART =
  /^(?:(?:conversations|messages|end_users)[-.\w]*\.(?:ndjson|parquet|csv)(?:\.tmp)?|duckdb_temp_.*)$/;

/** Removes what is in work, and the folder when it has nothing else. */
const sweepParts = async (parts: string): Promise<void> => {
  for (const name of await readdir(parts).catch((): string[] => []))
    if (OWN_PART.test(name)) await rm(join(parts, name), { recursive: true, force: true });
  // Anything else is not this command's, and keeps the folder.
  await rmdir(parts).catch(() => undefined);
};

/** @throws CopyError, UsageError when the file cannot be used */
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
    // For a file of SQLite, say, DuckDB would fetch an extension or take an installed one, and write into that file.
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
  // An open instance is the lock: only now are these files nobody else's.
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
      instance.closeSync();
      await sweepParts(parts);
    },
  };
};
