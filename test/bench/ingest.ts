import { setTimeout as sleep } from "node:timers/promises";
import { migrate } from "@conversation-export/warehouse";
import { type BusEvent, createSample } from "../sample/index.ts";
import { createDelivery } from "../system/deliver.ts";
import { type System, TOPICS } from "../system/system.ts";
import { kafkaEngine } from "./kafka-engine.ts";
import { type Cost, MOST_PAIRS, type Pair } from "./pairs.ts";
import { type Processes, processorMs, watchIdle } from "./processor-time.ts";
import { resultOf, type Result } from "./report.ts";
import { runSql } from "./warehouse-http.ts";
import { mergesIdle } from "./window-data.ts";

const DEADLINE_MS = 600_000;
const POLL_MS = 50;
/** Between these shares of the topic a consumer is warm and never short of messages. */
const WARM = 0.25;
const FULL = 0.85;
const PEER = "conversation_export_peer";
const ATTRIBUTES = ["specversion", "id", "source", "type", "time", "subject", "clientid"] as const;
/** Keeps the group together on a busy machine. */
const PATIENT = { LOG_LEVEL: "warn", KAFKA_SESSION_TIMEOUT_MS: "120000", LAG_INTERVAL_MS: "5000" };
export const STORED = [
  "conversations",
  "messages",
  "conversation_updates",
  "handoffs",
  "record_dates",
  "changes",
  "landing",
] as const;

export const PLAIN_SAMPLE = {
  seed: "bench",
  endUsers: 0,
  clients: ["acme", "globex", "initech"],
  lateShare: 0,
  duplicateShare: 0,
  poisonShare: 0,
  nullShare: 0,
  nonstandardShare: 0,
} as const;

const plainConversations = (conversations: number): Iterable<BusEvent> =>
  createSample({ ...PLAIN_SAMPLE, conversations, messagesPerConversation: 0, exportsPerConversation: 1 });

/** The peer reads only structured mode. */
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

const structured = function* (events: Iterable<BusEvent>): Iterable<BusEvent> {
  for (const event of events) if (event.kind === "conversation") yield toStructured(event);
};

export const fillBus = async (
  system: System,
  sample: Iterable<BusEvent>,
  log: (line: string) => void,
): Promise<{ readonly total: number; readonly eventBytes: number }> => {
  const delivery = createDelivery(system);
  await delivery.send(sample);
  const total = delivery.delivered.length;
  const bytes = delivery.delivered.reduce((sum, { event }) => sum + (event.value?.length ?? 0), 0);
  log(`${total} events of ${(bytes / total).toFixed(0)} bytes are on the bus`);
  return { total, eventBytes: bytes / total };
};

type Sample = { readonly wall: number; readonly done: number; readonly processor: number };

/** Offsets are committed after the rows are stored. */
const follow = async (
  system: System,
  group: string,
  total: number,
  spent: () => number,
): Promise<Sample[]> => {
  const samples: Sample[] = [];
  const deadline = performance.now() + DEADLINE_MS;
  for (let done = 0; done < total; ) {
    if (performance.now() > deadline) throw new Error(`only ${done} of ${total} events were read`);
    await sleep(POLL_MS);
    // A new group has no coordinator yet.
    const committed = await system.admin.fetchCommitted(group, Object.values(TOPICS)).catch(() => []);
    const now = committed.reduce((sum, { offset }) => sum + (offset ?? 0), 0);
    if (now > done) samples.push({ wall: performance.now(), done: now, processor: spent() });
    done = now;
  }
  return samples;
};

const steady = (samples: readonly Sample[], total: number): Cost => {
  const from = samples.find(({ done }) => done >= WARM * total);
  const to = samples.find(({ done }) => done >= FULL * total);
  const events = (to?.done ?? 0) - (from?.done ?? 0);
  if (from === undefined || to === undefined || events <= 0) throw new Error("more events are needed");
  return { wall: (to.wall - from.wall) / events, processor: (to.processor - from.processor) / events };
};

export const idleServer = ({ stack }: System): Promise<Processes> => watchIdle([stack.clickhouse.pid ?? -1]);

export const truncate = async (url: string): Promise<void> => {
  for (const table of STORED) await runSql(url, `TRUNCATE TABLE ${table} SYNC`);
  await mergesIdle(url);
};

/** In µs; ClickHouse's share includes `settle`. */
type IngestCost = Cost & { readonly node: number; readonly clickhouse: number };

type Consumption = {
  readonly total: number;
  readonly server: Processes;
  /** Waits for merges, or ends them. */
  readonly settle: (url: string) => Promise<void>;
};

/** So that the size of blocks does not decide how much is left unmerged. */
const mergeIntoOne = async (url: string): Promise<void> => {
  await mergesIdle(url);
  for (const table of STORED)
    await runSql(url, `OPTIMIZE TABLE ${table} FINAL SETTINGS optimize_skip_merged_partitions = 1`);
};

/** Of the tables that the engine fills; versions hold partitions and offsets. */
const ROWS_SQL = `SELECT
  (SELECT (count(), sum(cityHash64(toString((client_id, conversation_id, version, date_created, date_updated, csat_score))))) FROM conversations),
  (SELECT (count(), sum(cityHash64(client_id, conversation_id, version, date_updated))) FROM conversation_updates),
  (SELECT (count(), sum(cityHash64(client_id, conversation_id, target, version))) FROM handoffs WHERE notEmpty(entry))`;

const measure = async (
  system: System,
  deps: Consumption & { readonly url: string; readonly group: string },
  start: () => Promise<{ readonly pids: readonly number[]; stop(): Promise<void> }>,
): Promise<IngestCost> => {
  const { url, group, total, server, settle } = deps;
  const started = performance.now();
  const before = processorMs(server.pids);
  const { pids, stop } = await start();
  const samples = await follow(system, group, total, () => processorMs(pids));
  await settle(url);
  const idle = server.idle * (performance.now() - started);
  const clickhouse = ((processorMs(server.pids) - before - idle) / total) * 1_000;
  // Not counted: a dropped consumer of the engine takes a whole core until its flush is due.
  await stop();
  const middle = steady(samples, total);
  const node = middle.processor * 1_000;
  return { processor: node + clickhouse, wall: middle.wall * 1_000, node, clickhouse };
};

let groups = 0;

/** Neither the start nor cold code counts. */
export const measureIngest = (
  system: System,
  consumption: Consumption,
  env: Readonly<Record<string, string>>,
): Promise<IngestCost> => {
  groups += 1;
  const group = `bench-${groups}`;
  const url = system.stack.clickhouse.url("migrator");
  return measure(system, { ...consumption, url, group }, async () => {
    const ingest = await system.service("ingest", { ...PATIENT, ...env, KAFKA_GROUP_ID: group });
    return { pids: [ingest.pid], stop: () => ingest.kill("SIGTERM") };
  });
};

const measureEngine = (system: System, url: string, consumption: Consumption): Promise<IngestCost> => {
  groups += 1;
  const group = `bench-${groups}`;
  return measure(system, { ...consumption, url, group }, async () => {
    const { create, drop } = kafkaEngine(system.stack.kafka.brokers.join(","), TOPICS.conversation, group);
    for (const statement of create) await runSql(url, statement);
    const stop = async (): Promise<void> => {
      for (const statement of drop) await runSql(url, statement);
    };
    return { pids: [], stop };
  });
};

export const benchIngest = async (
  system: System,
  events: number,
  log: (line: string) => void,
): Promise<Result[]> => {
  const { total } = await fillBus(system, structured(plainConversations(events)), log);
  const url = system.stack.clickhouse.url("migrator");
  const peerUrl = system.stack.clickhouse.url("migrator", PEER);
  await migrate({ url: peerUrl });
  const consumption = { total, server: await idleServer(system), settle: mergeIntoOne };
  const engine: Pair[] = [];
  const landing: Pair[] = [];
  for (let round = 0; round < MOST_PAIRS; round += 1) {
    await truncate(url);
    const without = await measureIngest(system, consumption, { LANDING: "off" });
    await truncate(peerUrl);
    const peer = await measureEngine(system, peerUrl, consumption);
    const [rows, peerRows] = await Promise.all([url, peerUrl].map((one) => runSql(one, ROWS_SQL)));
    if (rows?.text !== peerRows?.text)
      throw new Error(`other rows than the engine's: ${rows?.text} ${peerRows?.text}`);
    await truncate(url);
    const landed = await measureIngest(system, consumption, { LANDING: "on" });
    engine.push({ ours: without, peer });
    landing.push({ ours: landed, peer: without });
    const each = [without, peer, landed].map(
      ({ node, clickhouse }) => `${node.toFixed(1)} + ${clickhouse.toFixed(1)}`,
    );
    log(`µs of Node + ClickHouse an event: without landing, engine, with landing: ${each.join(", ")}`);
  }
  return [resultOf("ingest", "us", engine), resultOf("landing", "us", landing)];
};
