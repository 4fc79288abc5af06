import { existsSync } from "node:fs";
import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBValue } from "@duckdb/node-api";
import { KINDS, type ListName } from "../../../lists/kinds.ts";
import { CopyError, isCode, UsageError } from "../../exit-code.ts";
import { behindLinks } from "../../local-path.ts";
import { keepTables, type Tables } from "../duckdb/duckdb.ts";
import { type DuckDbFile, openDuckDbFile } from "../duckdb/duckdb-file.ts";
import { publishFile } from "../durable-file.ts";
import { isInMaking, makeDuckDbFile, sweepDuckDbFile } from "../duckdb/new-duckdb-file.ts";
import { type TableFormat, tableColumns } from "./table-columns.ts";
import { piecesOf, tableLayout } from "./table-layout.ts";
import { factsOf, rowsIn, type TableToWrite, type Written, writeTable } from "./table-writing.ts";
import type { Target } from "../target.ts";

export const TABLES_FILE = "pull.duckdb";
/** DuckDB limits row groups by bytes only without an order. */
const SETTINGS = {
  memory_limit: "512MB",
  threads: "1",
  preserve_insertion_order: "false",
  // The default of 16 MB would checkpoint after every second portion.
  checkpoint_threshold: "128MB",
};

const REMEDY = "put the folder's last whole copy back, or pull into a new folder";

const FILES_TABLE =
  "CREATE TABLE pull_files (list VARCHAR, changes BIGINT, written BIGINT, rows BIGINT, bytes BIGINT, sha256 VARCHAR)";

const prepareFolder = async (root: string, file: string): Promise<void> => {
  await mkdir(root, { recursive: true });
  const others = (await readdir(root)).filter((name) => !isInMaking(file, name));
  if (!others.includes(TABLES_FILE) && others.length > 0)
    throw new UsageError(`${root} is no copy of tables, and not empty: it has ${others[0]}`);
};

type Noted = Written & { readonly isCurrent: boolean };

const notedOf = async ({ rows }: DuckDbFile, list: ListName): Promise<Noted | undefined> => {
  const [found] = await rows(
    "SELECT changes = written, rows, bytes, sha256 FROM pull_files WHERE list = $1 AND written IS NOT NULL",
    [list],
  );
  if (found === undefined) return undefined;
  const [isCurrent, count, bytes, sha256] = found;
  return { isCurrent: isCurrent === true, rows: Number(count), bytes: Number(bytes), sha256: String(sha256) };
};

/** Files of changed lists are rewritten from the DuckDB file beside them. @throws CopyError, UsageError */
export const openTableFiles = async (options: {
  readonly root: string;
  readonly format: TableFormat;
  readonly service: string;
  readonly lists: readonly ListName[];
}): Promise<Target> => {
  const { root, format, service, lists } = options;
  const name = behindLinks(join(root, TABLES_FILE));
  await prepareFolder(root, name);
  await makeDuckDbFile(name, SETTINGS, [FILES_TABLE]);
  const file = await openDuckDbFile(name, SETTINGS);
  const { rows } = file;
  const pathOf = (list: ListName): string => join(root, `${list}.${format}`);
  const change = async (list: ListName, set: string, values: DuckDBValue[] = []): Promise<void> => {
    const own = "WHERE NOT EXISTS (FROM pull_files WHERE list = $1)";
    await rows(`INSERT INTO pull_files (list, changes) SELECT $1, 0 ${own}`, [list]);
    await rows(`UPDATE pull_files SET ${set} WHERE list = $1`, [list, ...values]);
  };
  const keep = async (): Promise<Tables> => {
    await sweepDuckDbFile(name);
    await rows("SET TimeZone = 'UTC'");
    const kept = await keepTables(file, {
      name: root,
      service,
      lists,
      layout: tableLayout(format),
      remedy: REMEDY,
      onChange: (list) => change(list, "changes = changes + 1"),
    });
    await rows("SELECT list, changes, written, rows, bytes, sha256 FROM pull_files LIMIT 0").catch(() => {
      throw new CopyError(`${name} has no whole table pull_files: ${REMEDY}`);
    });
    for (const list of lists)
      if (kept.state(list) === undefined && existsSync(pathOf(list)))
        throw new CopyError(`${pathOf(list)}: ${name} has no state of it: ${REMEDY}`);
    return kept;
  };
  const tables = await keep().catch(async (error: unknown) => {
    await file.close();
    throw error;
  });
  const tableOf = (list: ListName): TableToWrite => ({
    list,
    format,
    columns: tableColumns(format, list, tables.state(list)?.fields ?? null),
  });
  const sizeOf = async (list: ListName): Promise<number | undefined> =>
    stat(pathOf(list)).then(
      ({ size }) => size,
      (error: unknown) => {
        if (isCode(error, "ENOENT")) return undefined;
        throw error;
      },
    );

  return {
    ...tables,
    publish: async (list) => {
      const noted = await notedOf(file, list);
      if (noted?.isCurrent === true && (await sizeOf(list)) === noted.bytes) return;
      const { path, rows: count, bytes, sha256 } = await writeTable(file, tableOf(list));
      if (count !== tables.count(list))
        throw new Error(`${path} has ${count} rows, not the ${tables.count(list)} of the copy`);
      await publishFile(path, pathOf(list));
      // Killed before this, the next pull writes the same file again.
      await file.inTransaction(() =>
        change(list, "written = changes, rows = $2, bytes = $3, sha256 = $4", [
          BigInt(count),
          BigInt(bytes),
          sha256,
        ]),
      );
    },
    check: async (list) => {
      const path = pathOf(list);
      const noted = await notedOf(file, list);
      if (noted?.isCurrent !== true) throw new CopyError(`${path} is older than the copy: pull it first`);
      if ((await sizeOf(list)) === undefined) throw new CopyError(`${path} is missing: pull it first`);
      const { bytes, sha256 } = await factsOf(path);
      if (bytes !== noted.bytes || sha256 !== noted.sha256)
        throw new CopyError(`${path} is not what was written: remove it and pull again`);
      if ((await rowsIn(file, tableOf(list), path)) !== tables.count(list))
        throw new CopyError(`${path} has not the rows of the copy: remove it and pull again`);
    },
    digests: async function* (list) {
      const table = tables.tableOf(list);
      const sql = `SELECT ${KINDS[list].id}, pull_digest FROM ${table}
        UNION ALL SELECT id, pull_digest FROM ${piecesOf(table)} WHERE n = 0`;
      for await (const [id, digest] of file.stream(sql)) yield { id: String(id), digest: String(digest) };
    },
  };
};
