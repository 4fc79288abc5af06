import { migrate } from "@conversation-export/warehouse";
import { type System, TOPICS } from "../system/system.ts";
import type { BusEvent } from "../sample/index.ts";
import { readMetric } from "../system/metrics-text.ts";
import { ingestCost, ingestRate } from "./ingest-rate.ts";
import { fillBus, plainConversations, serverSeconds, STORED } from "./ingest-run.ts";
import { kafkaEngineStatements } from "./kafka-engine.ts";
import { median, type Result, speedResult } from "./report.ts";
import { runSql } from "./warehouse-http.ts";

const ROUNDS = 3;
const ATTRIBUTES = ["specversion", "id", "source", "type", "time", "subject", "clientid"] as const;

/** The same event in structured mode, the only one that the peer can read. */
const toStructured = (event: BusEvent): BusEvent => {
  if (event.headers["ce_specversion"] === undefined || event.value === null) return event;
  const attributes: Record<string, string> = {};
  for (const name of ATTRIBUTES) {
    const value = event.headers[`ce_${name}`];
    if (value !== undefined) attributes[name] = value;
  }
  const text = `${JSON.stringify(attributes).slice(0, -1)},"data":${event.value.toString()}}`;
  return { ...event, headers: { "content-type": "application/cloudevents+json" }, value: Buffer.from(text) };
};

const conversationsOnly = function* (events: Iterable<BusEvent>): Iterable<BusEvent> {
  for (const event of events) if (event.kind === "conversation") yield toStructured(event);
};

/** Counts rows from the metadata of parts, cheap enough to be polled. */
const rowsIn = (url: string) => async (): Promise<number> =>
  Number((await runSql(url, "SELECT count() FROM conversations")).text);

/** µs of processor time that an event may take. */
const NODE_GOAL = 40;
const CPU_GOAL = 65;

const cpuResult = (name: string, ours: number, most: number): Result => ({
  name,
  ours,
  peer: most,
  ratio: ours / most,
  goal: `ours<=${most}`,
  reached: ours <= most,
});

/**
 * Without landing: events a second, and µs of processor time of the ingest process and of ClickHouse for an
 * event.
 */
const ingestCpu = async (
  system: System,
  total: number,
  group: string,
): Promise<{ readonly rate: number; readonly node: number; readonly server: number }> => {
  const operator = system.stack.clickhouse.url("migrator");
  const { rate, spent } = await ingestCost(total, async () => {
    const ingest = await system.service("ingest", {
      KAFKA_GROUP_ID: group,
      LOG_LEVEL: "warn",
      LANDING: "off",
    });
    const node = async (): Promise<number> =>
      (await readMetric(ingest.metricsUrl, "process_cpu_seconds_total")) ?? Number.NaN;
    return {
      stop: () => ingest.kill("SIGTERM"),
      rows: rowsIn(operator),
      spent: () => Promise.all([node(), serverSeconds(operator)]),
    };
  });
  const [node = Number.NaN, server = Number.NaN] = spent;
  return { rate, node, server };
};

/** Reads one topic of conversations with our ingest and with ClickHouse's Kafka engine in turn. */
export const benchIngest = async (
  system: System,
  events: number,
  log: (line: string) => void,
): Promise<Result[]> => {
  const { total } = await fillBus(system, conversationsOnly(plainConversations(events)), log);

  const operator = system.stack.clickhouse.url("migrator");
  const truncate = async (url: string): Promise<void> => {
    for (const table of STORED) await runSql(url, `TRUNCATE TABLE ${table} SYNC`);
  };
  const ours: number[] = [];
  const peers: number[] = [];
  const costs: Awaited<ReturnType<typeof ingestCpu>>[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await truncate(operator);
    ours.push(
      await ingestRate(total, async () => {
        const ingest = await system.service("ingest", {
          KAFKA_GROUP_ID: `bench-${round}`,
          LOG_LEVEL: "warn",
        });
        return { stop: () => ingest.kill("SIGTERM"), rows: rowsIn(operator) };
      }),
    );
    log(`round ${round + 1}: our ingest ${ours.at(-1)?.toFixed(0)} events/s`);
    await truncate(operator);
    const cost = await ingestCpu(system, total, `bench-cpu-${round}`);
    costs.push(cost);
    log(
      `round ${round + 1}: without landing ${cost.rate.toFixed(0)} events/s, ${cost.node.toFixed(1)} µs of Node, ` +
        `${cost.server.toFixed(1)} µs of ClickHouse`,
    );
    await truncate(operator);

    const peer = system.stack.clickhouse.url("migrator", `conversation_export_peer${round}`);
    await migrate({ url: peer });
    const statements = kafkaEngineStatements(
      system.stack.kafka.brokers.join(","),
      TOPICS.conversation,
      `peer-${round}`,
    );
    peers.push(
      await ingestRate(total, async () => {
        for (const statement of statements) await runSql(peer, statement);
        const stop = async (): Promise<void> => {
          for (const view of ["peer_consumer", "peer_handoffs", "peer_updates", "peer_conversations"]) {
            await runSql(peer, `DROP VIEW ${view} SYNC`);
          }
          await runSql(peer, "DROP TABLE peer_queue SYNC");
        };
        return { stop, rows: rowsIn(peer) };
      }),
    );
    log(`round ${round + 1}: Kafka engine ${peers.at(-1)?.toFixed(0)} events/s`);
    await runSql(operator, `DROP DATABASE conversation_export_peer${round} SYNC`);
  }
  const rates = costs.map(({ rate }) => rate);
  return [
    speedResult("ingest_vs_kafka_engine", median(ours), median(peers), 1.2),
    speedResult("ingest_without_landing_vs_kafka_engine", median(rates), median(peers), 1.2),
    cpuResult("ingest_cpu_us_node", median(costs.map(({ node }) => node)), NODE_GOAL),
    cpuResult("ingest_cpu_us", median(costs.map(({ node, server }) => node + server)), CPU_GOAL),
  ];
};
