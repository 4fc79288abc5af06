import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ListName } from "../../../lists/kinds.ts";
import { CopyError, UsageError } from "../../exit-code.ts";
import { type DuckDbFile, type Layout, openDuckDbFile } from "./duckdb-file.ts";
import { DUCKDB_LAYOUT } from "./duckdb-layout.ts";
import { makeDuckDbFile, sweepDuckDbFile } from "./new-duckdb-file.ts";
import { rewriteDuckDbFile } from "./rewrite-duckdb-file.ts";
import { createSegmentWriter } from "../segment-file.ts";
import { isListState } from "../list-state.ts";
import type { ListState, Target } from "../target.ts";

/** DuckDB's buffers only; reading JSON needs several times as much. */
const SETTINGS = {
  memory_limit: "128MB",
  threads: "1",
  preserve_insertion_order: "true",
  // Each checkpoint rewrites the last rows of the table.
  checkpoint_threshold: "256MB",
};

const REMEDY =
  "put its last whole copy back, or pull with --replace: that begins anew, and the old table stays until the new one is complete";

type TablesOptions = {
  readonly name: string;
  readonly service: string;
  readonly lists: readonly ListName[];
  readonly layout: Layout;
  readonly remedy: string;
  readonly replace?: boolean;
  /** Runs in the transaction that changes the records. */
  readonly onChange?: (list: ListName) => Promise<void>;
};

export type Tables = Target & {
  tableOf(list: ListName): string;
};

const STATE_TABLES = ["pull_format", "pull_state"];

/** DuckDB's names ignore case. */
const tablesIn = async ({ rows }: DuckDbFile): Promise<ReadonlySet<string>> => {
  const found = await rows(
    "SELECT lower(table_name) FROM information_schema.tables WHERE table_catalog = current_database() AND table_schema = 'main'",
  );
  return new Set(found.map(([name]) => String(name)));
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** @throws CopyError, UsageError */
const readStateRows = async (
  { rows }: DuckDbFile,
  { name, service, layout }: TablesOptions,
): Promise<readonly (readonly [table: string, state: unknown])[]> => {
  const unusable = (): never => {
    throw new CopyError(
      `${name}: its tables ${STATE_TABLES.join(" and ")} are not those of this command: move it away and pull again`,
    );
  };
  const formats = await rows("SELECT format FROM pull_format").catch(unusable);
  const states = await rows("SELECT list, service, state FROM pull_state").catch(unusable);
  const [[kind] = []] = formats;
  if (formats.length !== 1 || typeof kind !== "string") return unusable();
  if (kind !== layout.name) throw new UsageError(`${name} is a copy of the kind ${kind}:`);
  return states.map(([table, of, state]) => {
    if (of !== service) throw new UsageError(`${name} is a copy of ${String(of)}, not of ${service}`);
    return [String(table), parsed(String(state))];
  });
};

const renewalOf = (list: ListName): string => `${list}_renewal`;

type Kept = { readonly states: Map<string, ListState>; readonly renewing: Set<ListName> };

/** @throws CopyError for tables without a usable state or a state without its tables */
const readStates = async (file: DuckDbFile, options: TablesOptions): Promise<Kept> => {
  const { name, lists, layout, remedy, replace = false } = options;
  const there = await tablesIn(file);
  const states = new Map<string, ListState>();
  const unusable = new Set<string>();
  if (STATE_TABLES.some((table) => there.has(table)))
    for (const [table, state] of await readStateRows(file, options)) {
      if (isListState(state)) states.set(table, state);
      else unusable.add(table);
    }
  const isThere = (table: string): boolean => there.has(table);
  const renewing = new Set<ListName>();
  for (const list of lists) {
    const renewal = renewalOf(list);
    if (replace || states.has(renewal) || unusable.has(renewal)) renewing.add(list);
    // An abandoned renewal may have another client or fields.
    if (replace) {
      states.delete(renewal);
      continue;
    }
    const table = renewing.has(list) ? renewal : list;
    const state = states.get(table);
    const tables = layout.tablesOf(table);
    if (state !== undefined && tables.every(isThere)) continue;
    if (state !== undefined) throw new CopyError(`${name} lacks a table of ${list}: ${remedy}`);
    else if (unusable.has(table) || tables.some(isThere))
      throw new CopyError(`${name} has ${list}, but no whole state of them: ${remedy}`);
  }
  return { states, renewing };
};

/** Rows and state are stored in one transaction. */
export const keepTables = async (file: DuckDbFile, options: TablesOptions): Promise<Tables> => {
  const { service, lists, layout, onChange } = options;
  const { rows, parts, inTransaction } = file;
  const { states, renewing } = await readStates(file, options);
  const counts = new Map<ListName, number>();
  const tableOf = (list: ListName): string => (renewing.has(list) ? renewalOf(list) : list);
  const countNow = async (list: ListName): Promise<void> => {
    counts.set(list, Number((await rows(layout.countSql(tableOf(list))))[0]?.[0] ?? 0));
  };
  for (const list of lists) if (states.has(tableOf(list))) await countNow(list);

  const beginStates = async (list: ListName): Promise<void> => {
    await rows("CREATE TABLE IF NOT EXISTS pull_format (format VARCHAR)");
    await rows("CREATE TABLE IF NOT EXISTS pull_state (list VARCHAR, service VARCHAR, state VARCHAR)");
    await rows("INSERT INTO pull_format SELECT $1 WHERE NOT EXISTS (FROM pull_format)", [layout.name]);
    if (!renewing.has(list)) return;
    // From a run that ended before it stored a state.
    for (const one of layout.tablesOf(renewalOf(list))) await rows(`DROP TABLE IF EXISTS ${one}`);
  };
  const storeState = async (table: string, state: ListState): Promise<void> => {
    await rows("DELETE FROM pull_state WHERE list = $1", [table]);
    await rows("INSERT INTO pull_state VALUES ($1, $2, $3)", [table, service, JSON.stringify(state)]);
  };

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
        if (!states.has(table)) await beginStates(list);
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
      await rows("DELETE FROM pull_state WHERE list = $1", [table]);
      states.delete(table);
    },
    isRenewing: (list) => renewing.has(list),
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
    rewrite: () => rewriteDuckDbFile(file),
    close: file.close,
  };
};

/** @throws CopyError, UsageError */
export const openDuckDb = async (options: {
  readonly file: string;
  readonly service: string;
  readonly lists: readonly ListName[];
  readonly replace?: boolean;
}): Promise<Target> => {
  const { file: name, ...others } = options;
  await makeDuckDbFile(name, SETTINGS, []);
  const file = await openDuckDbFile(name, SETTINGS);
  const keep = async (): Promise<Tables> => {
    await sweepDuckDbFile(name);
    return keepTables(file, { name, layout: DUCKDB_LAYOUT, remedy: REMEDY, ...others });
  };
  return keep().catch(async (error: unknown) => {
    await file.close();
    throw error;
  });
};
