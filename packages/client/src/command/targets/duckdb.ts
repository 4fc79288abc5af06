import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection, DuckDBValue } from "@duckdb/node-api";
import { FIELDS } from "../../interface/fields.ts";
import type { ListName } from "../../lists/changes.ts";
import { CopyError, UsageError } from "../exit-code.ts";
import { ID_FIELD, idOf, isDeletion } from "../line.ts";
import { createSegmentWriter, readSegment } from "./segment-file.ts";
import type { ListState, Segment, Target } from "./target.ts";

/** The limit counts its buffers alone: reading JSON takes several times as much besides. */
const SETTINGS = { memory_limit: "128MB", threads: "1", preserve_insertion_order: "true" };

type Kind = "text" | "number" | "integer" | "boolean" | "instant" | "json";
const TYPES = {
  text: "VARCHAR",
  number: "DOUBLE",
  integer: "BIGINT",
  boolean: "BOOLEAN",
  instant: "TIMESTAMP",
  json: "JSON",
} as const satisfies Record<Kind, string>;

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

type Column = { readonly name: string; readonly kind: Kind };

/** The id first, then the fields of the copy. */
const columnsOf = (list: ListName, fields: readonly string[] | null): readonly Column[] => {
  const all: Readonly<Record<string, Kind>> = FIELDS[list];
  const id = ID_FIELD[list];
  const names = Object.keys(all).filter((name) => name !== id && (fields === null || fields.includes(name)));
  return [
    { name: id, kind: "text" },
    ...names.map((name) => ({ name, kind: all[name] ?? "json" }) satisfies Column),
  ];
};

const createTable = (table: string, columns: readonly Column[]): string =>
  `CREATE TABLE IF NOT EXISTS ${table} (${columns.map(({ name, kind }) => `"${name}" ${TYPES[kind]}`).join(", ")}, record JSON)`;

/** How DuckDB reads a record: each field once, JSON as it stands; dates are texts first. */
const structureOf = (columns: readonly Column[]): string =>
  JSON.stringify(
    Object.fromEntries(columns.map(({ name, kind }) => [name, kind === "instant" ? "VARCHAR" : TYPES[kind]])),
  );

/** A column of a record that was read; all dates are in UTC. */
const valueOf = ({ name, kind }: Column): string => {
  if (kind === "json") return `nullif(fields."${name}", 'null'::JSON)`;
  return kind === "instant" ? `TRY_CAST(fields."${name}" AS TIMESTAMP)` : `fields."${name}"`;
};

/**
 * A copy as tables in a file of DuckDB: one row a record, a column a field, and the record itself. Rows and
 * state are stored in one transaction.
 *
 * @throws CopyError, UsageError when the file cannot be used
 */
export const openDuckDb = async (options: {
  readonly file: string;
  readonly service: string;
  readonly lists: readonly ListName[];
}): Promise<Target> => {
  const { file, service, lists } = options;
  const { DuckDBInstance } = await import("@duckdb/node-api").catch(() => {
    throw new UsageError("duckdb: needs the package @duckdb/node-api, which is not installed");
  });
  const parts = `${file}.parts`;
  const instance = await DuckDBInstance.create(file, { ...SETTINGS, temp_directory: parts }).catch(
    (error: unknown) => {
      throw new CopyError(`${file}: ${error instanceof Error ? error.message : String(error)}`);
    },
  );
  // An open instance is the lock: only now are these files nobody else's.
  await rm(parts, { recursive: true, force: true });
  await mkdir(parts, { recursive: true });
  const connection: DuckDBConnection = await instance.connect();
  const rows = async (sql: string, values: DuckDBValue[] = []): Promise<DuckDBValue[][]> =>
    (await connection.runAndReadAll(sql, values)).getRows();

  await rows("CREATE TABLE IF NOT EXISTS pull_state (list VARCHAR, service VARCHAR, state VARCHAR)");
  /** By table: a copy that is made afresh has one of its own until it is complete. */
  const states = new Map<string, ListState>();
  const counts = new Map<ListName, number>();
  const renewing = new Set<ListName>();
  const tableOf = (list: ListName): string => (renewing.has(list) ? `${list}_renewal` : list);
  const close = async (): Promise<void> => {
    connection.closeSync();
    instance.closeSync();
    await rm(parts, { recursive: true, force: true });
  };
  for (const [table, of, state] of await rows("SELECT list, service, state FROM pull_state")) {
    if (of !== service) {
      await close();
      throw new UsageError(`${file} is a copy of ${String(of)}`);
    }
    states.set(String(table), JSON.parse(String(state)) as ListState);
  }
  for (const list of lists) {
    if (states.has(`${list}_renewal`)) renewing.add(list);
    if (!states.has(tableOf(list))) continue;
    counts.set(list, Number((await rows(`SELECT count(*) FROM ${tableOf(list)}`))[0]?.[0] ?? 0));
  }

  const inTransaction = async (work: () => Promise<void>): Promise<void> => {
    await rows("BEGIN");
    try {
      await work();
      await rows("COMMIT");
    } catch (error) {
      await rows("ROLLBACK").catch(() => undefined);
      throw error;
    }
  };

  const storeState = async (table: string, state: ListState): Promise<void> => {
    await rows("DELETE FROM pull_state WHERE list = $1", [table]);
    await rows("INSERT INTO pull_state VALUES ($1, $2, $3)", [table, service, JSON.stringify(state)]);
  };

  /** Fills the table `stage` with the lines of a file. */
  const fillStage = async (segment: Segment): Promise<void> => {
    await rows(
      "CREATE OR REPLACE TEMP TABLE stage (place INTEGER, id VARCHAR, record VARCHAR, deleted BOOLEAN)",
    );
    const appender = await connection.createAppender("stage");
    let place = 0;
    for await (const line of readSegment(join(parts, segment.file), "plain")) {
      appender.appendInteger(place);
      appender.appendVarchar(idOf(line));
      appender.appendVarchar(line);
      appender.appendBoolean(isDeletion(line));
      appender.endRow();
      place += 1;
    }
    appender.closeSync();
  };

  /** Replaces the records that a file of lines names. */
  const load = async (list: ListName, columns: readonly Column[], segment: Segment): Promise<void> => {
    const table = tableOf(list);
    await fillStage(segment);
    await rows("DELETE FROM stage WHERE place NOT IN (SELECT max(place) FROM stage GROUP BY id)");
    await rows(`DELETE FROM ${table} WHERE ${ID_FIELD[list]} IN (SELECT id FROM stage)`);
    const names = columns.map(({ name }) => `"${name}"`).join(", ");
    await rows(`INSERT INTO ${table} (${names}, record) SELECT ${columns.map(valueOf).join(", ")}, record FROM
      (SELECT json_transform(record, ${quoted(structureOf(columns))}) AS fields, record FROM stage WHERE NOT deleted)`);
    await rows("DROP TABLE stage");
  };

  let number = 0;
  return {
    state: (list) => states.get(tableOf(list)),
    begin: (list) => {
      number += 1;
      return Promise.resolve(createSegmentWriter(parts, `${list}-${number}.ndjson`, "plain"));
    },
    commit: async (list, segments, state) => {
      const columns = columnsOf(list, state.fields);
      const table = tableOf(list);
      await inTransaction(async () => {
        await rows(createTable(table, columns));
        // A copy may be older than a field.
        for (const { name, kind } of columns)
          await rows(`ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS "${name}" ${TYPES[kind]}`);
        for (const segment of segments) if (segment.lines > 0) await load(list, columns, segment);
        await storeState(table, state);
      });
      states.set(table, state);
      counts.set(list, Number((await rows(`SELECT count(*) FROM ${table}`))[0]?.[0] ?? 0));
      for (const segment of segments) await rm(join(parts, segment.file), { force: true });
    },
    renew: async (list) => {
      renewing.add(list);
      const table = tableOf(list);
      await inTransaction(async () => {
        await rows(`DROP TABLE IF EXISTS ${table}`);
        await rows("DELETE FROM pull_state WHERE list = $1", [table]);
      });
      states.delete(table);
    },
    complete: async (list) => {
      const table = tableOf(list);
      const state = states.get(table);
      if (!renewing.has(list) || state === undefined) return;
      await inTransaction(async () => {
        await rows(`DROP TABLE IF EXISTS ${list}`);
        await rows(`ALTER TABLE ${table} RENAME TO ${list}`);
        await rows("DELETE FROM pull_state WHERE list = $1", [table]);
        await storeState(list, state);
      });
      states.delete(table);
      states.set(list, state);
      renewing.delete(list);
    },
    lines: async function* (list) {
      const result = await connection.stream(`SELECT record::VARCHAR FROM ${tableOf(list)}`);
      for await (const chunk of result.yieldRows()) for (const [record] of chunk) yield String(record);
    },
    count: (list) => counts.get(list) ?? 0,
    // Deleted and replaced rows are gone already.
    compact: () => Promise.resolve(),
    close,
  };
};
