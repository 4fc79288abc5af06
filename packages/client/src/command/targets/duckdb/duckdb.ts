import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ListName } from "../../../lists/changes.ts";
import { UsageError } from "../../exit-code.ts";
import { type DuckDbFile, type Layout, openDuckDbFile } from "./duckdb-file.ts";
import { DUCKDB_LAYOUT } from "./duckdb-layout.ts";
import { makeDuckDbFile, sweepDuckDbFile } from "./new-duckdb-file.ts";
import { createSegmentWriter } from "../segment-file.ts";
import type { ListState, Target } from "../target.ts";

/** The limit counts its buffers alone: reading JSON takes several times as much besides. */
const SETTINGS = {
  memory_limit: "128MB",
  threads: "1",
  preserve_insertion_order: "true",
  // Each checkpoint writes the last rows of the table anew.
  checkpoint_threshold: "256MB",
};

type TablesOptions = {
  /** What to call the copy in errors. */
  readonly name: string;
  readonly service: string;
  readonly lists: readonly ListName[];
  readonly layout: Layout;
  /** Records of the list changed; runs in the transaction that changes them. */
  readonly onChange?: (list: ListName) => Promise<void>;
};

export type Tables = Target & {
  /** The table that has the records of a list now. */
  tableOf(list: ListName): string;
};

/** @throws UsageError for a copy of another kind or service */
const readStates = async (
  { rows }: DuckDbFile,
  { name, service, layout }: TablesOptions,
): Promise<Map<string, ListState>> => {
  const [[known] = []] = await rows("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'pull_state'");
  await rows("CREATE TABLE IF NOT EXISTS pull_format (format VARCHAR)");
  const [[format] = []] = await rows("SELECT format FROM pull_format");
  const kind = format ?? (Number(known) > 0 ? "duckdb" : layout.name);
  if (kind !== layout.name) throw new UsageError(`${name} is a copy of the kind ${String(kind)}:`);
  if (format === undefined) await rows("INSERT INTO pull_format VALUES ($1)", [layout.name]);
  await rows("CREATE TABLE IF NOT EXISTS pull_state (list VARCHAR, service VARCHAR, state VARCHAR)");
  const states = new Map<string, ListState>();
  for (const [table, of, state] of await rows("SELECT list, service, state FROM pull_state")) {
    if (of !== service) throw new UsageError(`${name} is a copy of ${String(of)}, not of ${service}`);
    states.set(String(table), JSON.parse(String(state)) as ListState);
  }
  return states;
};

/** A copy as tables in an open file of DuckDB; rows and state are stored in one transaction. */
export const keepTables = async (file: DuckDbFile, options: TablesOptions): Promise<Tables> => {
  const { service, lists, layout, onChange } = options;
  const { rows, parts, inTransaction } = file;
  /** By table: a copy that is made afresh has one of its own until it is complete. */
  let states = new Map<string, ListState>();
  await inTransaction(async () => {
    states = await readStates(file, options);
  });
  const counts = new Map<ListName, number>();
  const renewing = new Set<ListName>();
  const tableOf = (list: ListName): string => (renewing.has(list) ? `${list}_renewal` : list);
  const countNow = async (list: ListName): Promise<void> => {
    counts.set(list, Number((await rows(layout.countSql(tableOf(list))))[0]?.[0] ?? 0));
  };
  for (const list of lists) {
    if (states.has(`${list}_renewal`)) renewing.add(list);
    if (states.has(tableOf(list))) await countNow(list);
  }

  const storeState = async (table: string, state: ListState): Promise<void> => {
    await rows("DELETE FROM pull_state WHERE list = $1", [table]);
    await rows("INSERT INTO pull_state VALUES ($1, $2, $3)", [table, service, JSON.stringify(state)]);
  };

  /** Tables that are there with all columns. */
  const prepared = new Set<string>();
  let number = 0;
  return {
    tableOf,
    state: (list) => states.get(tableOf(list)),
    begin: (list) => {
      number += 1;
      return Promise.resolve(createSegmentWriter(parts, `${list}-${number}.ndjson`, "plain"));
    },
    commit: async (list, segments, state) => {
      const table = tableOf(list);
      const of = { list, table, fields: state.fields };
      await inTransaction(async () => {
        if (!prepared.has(table)) await layout.prepare(file, of);
        let changed = 0;
        for (const segment of segments)
          if (segment.lines > 0)
            changed += await layout.load(file, { ...of, path: join(parts, segment.file) });
        if (changed > 0) await onChange?.(list);
        await storeState(table, state);
      });
      prepared.add(table);
      states.set(table, state);
      await countNow(list);
      for (const segment of segments) await rm(join(parts, segment.file), { force: true });
    },
    renew: async (list) => {
      renewing.add(list);
      const table = tableOf(list);
      prepared.delete(table);
      await inTransaction(async () => {
        for (const one of layout.tablesOf(table)) await rows(`DROP TABLE IF EXISTS ${one}`);
        await rows("DELETE FROM pull_state WHERE list = $1", [table]);
      });
      states.delete(table);
    },
    complete: async (list) => {
      const table = tableOf(list);
      const state = states.get(table);
      if (!renewing.has(list) || state === undefined) return;
      await inTransaction(async () => {
        const names = layout.tablesOf(list);
        for (const [at, one] of layout.tablesOf(table).entries()) {
          await rows(`DROP TABLE IF EXISTS ${names[at]}`);
          await rows(`ALTER TABLE ${one} RENAME TO ${names[at]}`);
        }
        await rows("DELETE FROM pull_state WHERE list = $1", [table]);
        await storeState(list, state);
        await onChange?.(list);
      });
      states.delete(table);
      states.set(list, state);
      renewing.delete(list);
    },
    lines: async function* (list) {
      for await (const [record] of file.stream(`SELECT record::VARCHAR FROM ${tableOf(list)}`))
        yield String(record);
    },
    count: (list) => counts.get(list) ?? 0,
    // Deleted and replaced rows are gone already.
    compact: () => Promise.resolve(),
    close: file.close,
  };
};

/**
 * A copy as tables in a file of DuckDB: one row a record, a column a field, and the record itself.
 *
 * @throws CopyError, UsageError when the file cannot be used
 */
export const openDuckDb = async (options: {
  readonly file: string;
  readonly service: string;
  readonly lists: readonly ListName[];
}): Promise<Target> => {
  const { file: name, service, lists } = options;
  await makeDuckDbFile(name, SETTINGS, []);
  const file = await openDuckDbFile(name, SETTINGS);
  const keep = async (): Promise<Tables> => {
    await sweepDuckDbFile(name);
    return keepTables(file, { name, service, lists, layout: DUCKDB_LAYOUT });
  };
  return keep().catch(async (error: unknown) => {
    await file.close();
    throw error;
  });
};
