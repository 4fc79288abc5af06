import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import type { OpenStep } from "@conversation-export/warehouse";
import { DuckDBInstance } from "@duckdb/node-api";

export type Row = Readonly<Record<string, unknown>>;

const INSTANT = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?([+-]\d\d)(?::(\d\d))?$/;

/** DuckDB prints dates in the machine's time zone, without trailing zeros. */
const asSent = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(asSent);
  if (typeof value === "string") {
    const match = INSTANT.exec(value);
    if (match === null) return value;
    const [, day = "", time = "", fraction = "", hours = "", minutes = "00"] = match;
    const seconds = new Date(`${day}T${time}${hours}:${minutes}`).toISOString().slice(0, 19);
    return `${seconds}.${fraction.padEnd(6, "0")}+00:00`;
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, asSent(one)]));
};

export const readParquet = async (bytes: Buffer): Promise<Row[]> => {
  const folder = await mkdtemp(join(tmpdir(), "parquet-"));
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  try {
    const file = join(folder, "list.parquet");
    await writeFile(file, bytes);
    const connection = await instance.connect();
    const sql = `SELECT to_json(t)::VARCHAR FROM read_parquet('${file}') AS t`;
    const rows = (await connection.runAndReadAll(sql)).getRows();
    connection.closeSync();
    return rows.map(([row]) => asSent(JSON.parse(String(row))) as Row);
  } finally {
    instance.closeSync();
    await rm(folder, { recursive: true, force: true });
  }
};

export const readParts = async (open: OpenStep): Promise<{ rows: Row[]; parts: number }> => {
  const rows: Row[] = [];
  let parts = 0;
  for (let next: OpenStep | null = open; next !== null; parts += 1) {
    const part = await next(new AbortController().signal);
    rows.push(...(await readParquet(await buffer(part.bytes))));
    next = part.next;
  }
  return { rows, parts };
};
