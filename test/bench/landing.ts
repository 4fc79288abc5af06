import { createDelivery } from "../support/run/deliver.ts";
import { readMetric } from "../support/run/metrics-text.ts";
import type { System } from "../support/run/system.ts";
import { createSample } from "../support/sample/index.ts";
import { ingestRate } from "./ingest-rate.ts";
import { median, type Result } from "./report.ts";
import { runSql } from "./warehouse-http.ts";

const ROUNDS = 5;
const MESSAGES_EACH = 4;
const TABLES = ["conversations", "messages"] as const;

/** What the threads of ClickHouse have used, for queries and merges. */
const serverSeconds = async (url: string): Promise<number> => {
  const event = "SELECT sum(value) / 1e6 FROM system.events WHERE event = 'OSCPUVirtualTimeMicroseconds'";
  return Number((await runSql(url, event)).text);
};

/** All topics, read with and without the landing table in turn; of each pair the first takes turns as well. */
export const benchLanding = async (
  system: System,
  events: number,
  log: (line: string) => void,
): Promise<Result[]> => {
  const delivery = createDelivery(system);
  await delivery.send(
    createSample({
      seed: "bench",
      conversations: Math.ceil(events / (1 + MESSAGES_EACH)),
      messagesPerConversation: MESSAGES_EACH,
      exportsPerConversation: 1,
      endUsers: 0,
      clients: ["acme", "globex", "initech"],
      lateShare: 0,
      duplicateShare: 0,
      poisonShare: 0,
      nullShare: 0,
      unusualShare: 0,
    }),
  );
  const total = delivery.delivered.length;
  const bytes = delivery.delivered.reduce((sum, { event }) => sum + (event.value?.length ?? 0), 0);
  delivery.delivered.length = 0;
  log(`${total} events of ${(bytes / total).toFixed(0)} bytes are on the bus`);

  const operator = system.stack.clickhouse.url("migrator");
  const rates = { on: [] as number[], off: [] as number[] };
  const cpu = { on: [] as number[], off: [] as number[] };
  let runs = 0;
  const measure = async (landing: "on" | "off"): Promise<void> => {
    for (const table of [...TABLES, "conversation_updates", "handoffs", "landing"]) {
      await runSql(operator, `TRUNCATE TABLE ${table} SYNC`);
    }
    runs += 1;
    let seconds = 0;
    const serverBefore = await serverSeconds(operator);
    const rate = await ingestRate(total, async () => {
      const ingest = await system.service("ingest", {
        KAFKA_GROUP_ID: `bench-landing-${runs}`,
        LANDING: landing,
        LOG_LEVEL: "warn",
      });
      const written = (table: string): Promise<number | null> =>
        readMetric(ingest.metricsUrl, "ingest_rows_written_total", { table });
      return {
        stop: async () => {
          seconds = (await readMetric(ingest.metricsUrl, "process_cpu_seconds_total")) ?? 0;
          await ingest.kill("SIGTERM");
        },
        // Not those of the tables: merges take superseded rows away.
        rows: async () =>
          (await Promise.all(TABLES.map(written))).reduce<number>((sum, one) => sum + (one ?? 0), 0),
      };
    });
    rates[landing].push(rate);
    const server = (await serverSeconds(operator)) - serverBefore;
    cpu[landing].push(seconds + server);
    log(
      `landing ${landing}: ${rate.toFixed(0)} events/s, CPU seconds: ingest ${seconds.toFixed(1)}, ClickHouse ${server.toFixed(1)}`,
    );
  };
  // The first run of all fills caches.
  await measure("on");
  rates.on.length = 0;
  cpu.on.length = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const order = round % 2 === 0 ? (["off", "on"] as const) : (["on", "off"] as const);
    for (const landing of order) await measure(landing);
  }
  const pairs = rates.on.map((rate, round) => rate / (rates.off[round] ?? Number.NaN));
  log(`ratios by round: ${pairs.map((pair) => pair.toFixed(2)).join(" ")}`);
  log(`CPU seconds without / with: ${(median(cpu.off) / median(cpu.on)).toFixed(2)}`);
  const ratio = median(pairs);
  return [
    {
      name: "landing_cost",
      ours: median(rates.on),
      peer: median(rates.off),
      ratio,
      goal: ">=0.8",
      reached: ratio >= 0.8,
    },
  ];
};
