import { randomUUID } from "node:crypto";
import { MICROS_IN_DAY, MICROS_IN_SECOND } from "@conversation-export/domain";
import {
  createReconcileStore,
  createRetentionStore,
  createSupersededEntries,
  createWindowStore,
  RETENTION_TABLES,
} from "@conversation-export/warehouse";
import { DAY_0 } from "../warehouse/records.ts";
import { uploadNow } from "../warehouse/upload-now.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { insertsOf, instantOf, mergeAll } from "./growth-data.ts";
import { createPeakMemory } from "./peak-memory.ts";
import { plainResult, type Result } from "./report.ts";
import { createMeter } from "./server-cost.ts";

const HOUR_SECONDS = 3_600;
const DAYS = 360;
/** The jobs' work, independent of the size of tables. */
const RECENT = 10_000;
const EXPIRING = 12_000;
const ASKED = 5_000;
const NOW = DAY_0 + 23 * HOUR_SECONDS * MICROS_IN_SECOND;

const fill = async ({ sql }: Warehouse, records: number): Promise<void> => {
  await sql("SYSTEM START MERGES");
  const spread = (count: number): string =>
    `${DAY_0} - ${DAYS * MICROS_IN_DAY} + n * ${Math.floor((DAYS * MICROS_IN_DAY) / count)}`;
  const run = async (statements: readonly string[]): Promise<void> => {
    for (const statement of statements) await sql(statement);
  };
  const id = "lower(hex(cityHash64(n, 1)))";
  const year = (client: string, count: number) => ({
    from: `SELECT number AS n FROM numbers(${count})`,
    client,
    id,
    created: spread(count),
    uploaded: `${spread(count)} + 60000000`,
  });
  await run(insertsOf(year("concat('client-', toString(n % 4))", records)));
  await run(insertsOf(year("'expiring'", EXPIRING)));
  await sql(
    "ALTER TABLE record_dates UPDATE added_at = added_at - INTERVAL 1 HOUR WHERE 1 SETTINGS mutations_sync = 2",
  );
  await mergeAll(sql);
  const batches = 8;
  // Odd: each batch has records of all clients.
  const step = Math.max(1, 2 * Math.floor((records / RECENT - 1) / 2) + 1);
  for (let batch = 0; batch < batches; batch += 1) {
    const uploaded = NOW - Math.round(((batches - batch) * 2 * HOUR_SECONDS * MICROS_IN_SECOND) / batches);
    await run(
      insertsOf({
        from: `SELECT (number * ${batches} + ${batch}) * ${step} AS n FROM numbers(${RECENT / batches})`,
        client: "concat('client-', toString(n % 4))",
        id,
        created: spread(records),
        uploaded: `${uploaded}`,
      }),
    );
  }
};

type Work = { readonly name: string; readonly run: (warehouse: Warehouse) => Promise<string> };

const startOfHour = (instant: number): number => instant - (instant % (HOUR_SECONDS * MICROS_IN_SECOND));

const WORKS: readonly Work[] = [
  {
    name: "windows, one count",
    run: async ({ session }) => {
      const store = createWindowStore({ session: session("jobs"), windowSeconds: HOUR_SECONDS });
      const counted = await store.count(startOfHour(NOW - 3 * HOUR_SECONDS * MICROS_IN_SECOND));
      return `${counted.reduce((sum, { rows }) => sum + rows, 0)} rows counted`;
    },
  },
  {
    name: "reconcile, one batch",
    run: async ({ session, sql }) => {
      const store = createReconcileStore({ session: session("jobs"), now: Date.now, holder: "bench" });
      const text =
        await sql(`SELECT client_id, conversation_id, toString(toUnixTimestamp64Micro(date_created))
        FROM conversations WHERE uploaded_at > ${instantOf(`${NOW} - ${2 * HOUR_SECONDS * MICROS_IN_SECOND}`)} LIMIT ${ASKED} FORMAT TSV`);
      const exports = text.split("\n").map((line) => {
        const [clientId = "", id = "", created] = line.split("\t");
        const version = { exportedAt: 0, partition: 0, offset: 0 };
        return { clientId, id, dateCreated: Number(created), version, handoffs: [] };
      });
      const lacking = await store.lacking("conversation.exported", exports);
      return `${lacking.filter((table) => table === null).length} readable`;
    },
  },
  {
    name: "compact, two windows",
    run: async ({ session }) => {
      const entries = createSupersededEntries({ session: session("jobs"), holder: "bench" });
      const length = HOUR_SECONDS * MICROS_IN_SECOND;
      const scope = { starts: [2, 1, 0].map((hours) => startOfHour(NOW) - hours * length), length };
      const written = await entries.countWritten(scope);
      const share = { ...scope, chunk: 0, chunks: 1 };
      const removed = await entries.remove(randomUUID(), share, new AbortController().signal);
      return `${removed} of ${written} removed`;
    },
  },
  {
    name: "retention, a month of one client",
    run: async ({ session }) => {
      const store = createRetentionStore({ session: session("jobs"), runUpload: uploadNow });
      const before = DAY_0 - (DAYS - 30) * MICROS_IN_DAY;
      const expired = await store.expired([{ clientId: "expiring", before }]);
      let rows = 0;
      for (const table of RETENTION_TABLES) {
        const found = (await expired.count(table)).reduce((sum, one) => sum + one.rows, 0);
        if (found > 0) await expired.erase(table);
        rows += found;
      }
      await expired.end(new AbortController().signal);
      return `${rows} rows erased`;
    },
  },
];

/** Merges and mutations count as well. */
export const benchGrowth = async (records: number, log: (line: string) => void): Promise<Result[]> => {
  const reads = new Map<string, number[]>();
  for (const share of [16, 4, 1]) {
    const size = Math.ceil(records / share);
    const warehouse = await startWarehouse();
    try {
      await fill(warehouse, size);
      log(`a year of ${size} records of each kind is stored`);
      const url = warehouse.stack.clickhouse.url("migrator");
      const meter = await createMeter(url);
      for (const { name, run } of WORKS) {
        const memory = createPeakMemory(url);
        let reported = "";
        const cost = await meter(async () => {
          reported = await run(warehouse);
        });
        const peak = await memory.stop();
        reads.set(name, [...(reads.get(name) ?? []), cost.rows]);
        const read = `${cost.rows} rows in ${cost.granules} granules read`;
        log(
          `${name}, ${size} records: ${read}, ${(cost.ms / 1_000).toFixed(2)} s, ${(peak / 1e6).toFixed(0)} MB; ${reported}`,
        );
      }
    } finally {
      await warehouse.stop();
    }
  }
  return [...reads].map(([name, [small = Number.NaN, , large = Number.NaN]]) => {
    return plainResult(`growth_of_${name.replaceAll(/[ ,]+/g, "_")}`, "rows", large, small);
  });
};
