import { mkdir, rm } from "node:fs/promises";
import type { DuckDBConnection, DuckDBValue } from "@duckdb/node-api";
import type { ListName } from "../../lists/changes.ts";
import { CopyError, UsageError } from "../exit-code.ts";

/** A file of DuckDB that this process alone has open. */
export type DuckDbFile = {
  /** The folder of what is in work: lines that were not loaded yet, what DuckDB spills. */
  readonly parts: string;
  readonly connection: DuckDBConnection;
  rows(sql: string, values?: DuckDBValue[]): Promise<DuckDBValue[][]>;
  /** Runs all of it, or none. */
  inTransaction(work: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
};

type Of = { readonly list: ListName; readonly table: string; readonly fields: readonly string[] | null };

/** How records stand in tables. */
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

const FULL = /No space left on device|Disk quota exceeded/i;

/** DuckDB tells that a disk is full in words alone. */
const asSystemError = (error: unknown): unknown =>
  error instanceof Error && FULL.test(error.message)
    ? Object.assign(new Error(`no space: ${error.message.split("\n")[0]}`), { code: "ENOSPC" })
    : error;

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
  const instance = await DuckDBInstance.create(file, { ...settings, temp_directory: parts }).catch(
    (error: unknown) => {
      throw new CopyError(`${file}: ${error instanceof Error ? error.message : String(error)}`);
    },
  );
  // An open instance is the lock: only now are these files nobody else's.
  await rm(parts, { recursive: true, force: true });
  await mkdir(parts, { recursive: true });
  const connection = await instance.connect();
  const rows = async (sql: string, values: DuckDBValue[] = []): Promise<DuckDBValue[][]> => {
    try {
      return (await connection.runAndReadAll(sql, values)).getRows();
    } catch (error) {
      throw asSystemError(error);
    }
  };
  return {
    parts,
    connection,
    rows,
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
      await rm(parts, { recursive: true, force: true });
    },
  };
};
