import { expect, it } from "vitest";
import { useRoot } from "../../root.fixture.ts";
import { openDuckDbFile } from "../duckdb/duckdb-file.ts";
import { tableColumns } from "./table-columns.ts";
import { tableLayout } from "./table-layout.ts";
import { writeTable } from "./table-writing.ts";

const path = useRoot();

it("writes more rows than memory holds", async () => {
  const format = "parquet";
  const settings = { memory_limit: "64MB", threads: "1", preserve_insertion_order: "false" };
  const file = await openDuckDbFile(path("copy.duckdb"), settings);
  try {
    const fields = ["csat"];
    const list = "conversations";
    await tableLayout(format).prepare(file, { list, table: list, fields });
    const random = Array.from({ length: 24 }, (_, at) => `md5((i * 100 + ${at})::VARCHAR)`).join(" || ");
    for (let from = 0; from < 120_000; from += 20_000)
      await file.rows(`INSERT INTO ${list} (pull_digest, "_id", csat)
        SELECT '', md5(i::VARCHAR), ${random} FROM range(${from}, ${from + 20_000}) AS of(i)`);
    const written = await writeTable(file, { list, format, columns: tableColumns(format, list, fields) });
    expect(written.rows).toBe(120_000);
  } finally {
    await file.close();
  }
}, 60_000);
