import { createDelivery } from "../system/deliver.ts";
import { readMetric } from "../system/metrics-text.ts";
import type { System } from "../system/system.ts";
import { type BusEvent, createSample } from "../sample/index.ts";
import { ingestRate } from "./ingest-rate.ts";
import { runSql } from "./warehouse-http.ts";

/** Tables whose rows are counted: the tables of records. */
const COUNTED = ["conversations", "messages"] as const;
/** All tables that events are written to. */
export const STORED = [
  ...COUNTED,
  "conversation_updates",
  "handoffs",
  "record_dates",
  "changes",
  "landing",
] as const;

/** A sample without end users in which nothing is late, sent twice or odd. */
export const PLAIN_SAMPLE = {
  seed: "bench",
  endUsers: 0,
  clients: ["acme", "globex", "initech"],
  lateShare: 0,
  duplicateShare: 0,
  poisonShare: 0,
  nullShare: 0,
  unusualShare: 0,
} as const;

/** Conversations alone, each exported once. */
export const plainConversations = (conversations: number): Iterable<BusEvent> =>
  createSample({ ...PLAIN_SAMPLE, conversations, messagesPerConversation: 0, exportsPerConversation: 1 });

/** Sends a sample to the bus. Returns its number of events and their mean size in bytes. */
export const fillBus = async (
  system: System,
  sample: Iterable<BusEvent>,
  log: (line: string) => void,
): Promise<{ total: number; eventBytes: number }> => {
  const delivery = createDelivery(system);
  await delivery.send(sample);
  const total = delivery.delivered.length;
  const bytes = delivery.delivered.reduce((sum, { event }) => sum + (event.value?.length ?? 0), 0);
  delivery.delivered.length = 0;
  log(`${total} events of ${(bytes / total).toFixed(0)} bytes are on the bus`);
  return { total, eventBytes: bytes / total };
};

/** Processor time of ClickHouse so far, for queries and merges. */
export const serverSeconds = async (url: string): Promise<number> => {
  const event = "SELECT sum(value) / 1e6 FROM system.events WHERE event = 'OSCPUVirtualTimeMicroseconds'";
  return Number((await runSql(url, event)).text);
};

/**
 * Reads the bus from its start into empty tables. Returns events a second and the processor seconds of ingest
 * and ClickHouse.
 */
export const runIngest = async (
  system: System,
  total: number,
  env: Readonly<Record<string, string>>,
): Promise<{ rate: number; ingest: number; server: number }> => {
  const operator = system.stack.clickhouse.url("migrator");
  for (const table of STORED) await runSql(operator, `TRUNCATE TABLE ${table} SYNC`);
  let seconds = 0;
  const before = await serverSeconds(operator);
  const rate = await ingestRate(total, async () => {
    const ingest = await system.service("ingest", { ...env, LOG_LEVEL: "warn" });
    const written = (table: string): Promise<number | null> =>
      readMetric(ingest.metricsUrl, "ingest_rows_written_total", { table });
    return {
      stop: async () => {
        seconds = (await readMetric(ingest.metricsUrl, "process_cpu_seconds_total")) ?? 0;
        await ingest.kill("SIGTERM");
      },
      // Not the rows in the tables: merges remove superseded ones.
      rows: async () =>
        (await Promise.all(COUNTED.map(written))).reduce<number>((sum, one) => sum + (one ?? 0), 0),
    };
  });
  return { rate, ingest: seconds, server: (await serverSeconds(operator)) - before };
};
