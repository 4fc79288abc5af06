import { once } from "node:events";
import { readFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { fetchPatiently } from "../compare/patient-fetch.ts";
import { handMade } from "../sample/hand-made.ts";
import { createPlaces, sendEvents } from "../system/deliver.ts";
import { readMetric } from "../system/metrics-text.ts";
import { peakMegabytes } from "../system/process-memory.ts";
import type { ServiceName, ServiceProcess } from "../system/service-process.ts";
import { bySize } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";

const VALUES = fileURLToPath(new URL("../../deploy/charts/conversation-export/values.yaml", import.meta.url));

/** The reduced run divides everything, the chart's heaps too. */
const PART = bySize(10, 1);
const IDLE_HEAP_MB = 40;

/** Of a client with more than a writer may hold, and of one that fits. */
const SUPPRESSIONS = 16_000_000 / PART;
const SUPPRESSIONS_HELD = 4_500_000 / PART;
const LARGE_REQUESTS = Math.ceil(1_502 / PART);
const LOUD_RECORDS = bySize(20_000, 100_000);
const NEIGHBOURS = 10;
const STREAMS = 4;
const PAGES = 4;
const DEADLINE_MS = bySize(180_000, 900_000);
/** For most answers to neighbours: half of a ten-second timeout. */
const ANSWER_MS = 5_000;
/** For every answer to a neighbour, even on a busy machine. */
const PATIENCE_MS = 30_000;
/** Of neighbours' pages; none on an idle machine. */
const REFUSED_SHARE = 0.05;
const DAY_0 = Date.UTC(2026, 0, 1) * 1000;
const WINDOW = "created_since=2026-01-01T00:00:00Z";
const ENV = { ERASURE_INTERVAL_SECONDS: "3", SUPPRESSIONS_IN_MEMORY: String(5_000_000 / PART) };

type Limited = { readonly name: ServiceName; readonly process: ServiceProcess; readonly megabytes: number };
type Answer = { readonly status: number; readonly ms: number; readonly text: string };
type Send = (url: string, init: RequestInit) => Promise<Response>;

let system: System;
let limited: readonly Limited[] = [];
let attacker = "";
let accomplice = "";
let neighbours: string[] = [];
let send: (id: string) => Promise<void>;

const startLimited = async (name: ServiceName, env: Record<string, string> = ENV): Promise<Limited> => {
  type Component = { heapPercent: number; resources: { limits: { memory: string } } };
  const chart = parse(readFileSync(VALUES, "utf8")) as Record<string, Component>;
  const values = chart[name === "export-api" ? "exportApi" : name];
  const [, size, unit] = /^(\d+)([MG])i$/.exec(values?.resources.limits.memory ?? "") ?? [];
  const megabytes = Number(size) * (unit === "G" ? 1024 : 1);
  const full = (megabytes * (values?.heapPercent ?? Number.NaN)) / 100;
  const heap = Math.floor(IDLE_HEAP_MB + (full - IDLE_HEAP_MB) / PART);
  const process = await system.service(name, { ...env, NODE_OPTIONS: `--max-old-space-size=${heap}` });
  return { name, process, megabytes };
};

const ask = async (
  path: string,
  { key, body, signal, send = fetch }: { key: string; body?: unknown; signal?: AbortSignal; send?: Send },
): Promise<Answer> => {
  const begun = performance.now();
  const answer = await send(new URL(path, system.apiUrl).href, {
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
  const text = await answer.text();
  return { status: answer.status, ms: performance.now() - begun, text };
};

const pageOf = (size: number): string => `/api/v2/export/messages?${WINDOW}&page_size=${size}`;

const storeMessages = (clientId: string, rows: number): Promise<string> =>
  system.sql(`INSERT INTO messages (client_id, date_created, message_id, version, record)
    SELECT '${clientId}', fromUnixTimestamp64Micro(${DAY_0} + number, 'UTC'), toString(number), 1,
      concat('{"_id":"', toString(number), '","text":"', repeat('x', 2000), '"}') FROM numbers(${rows})`);

const storeSuppressions = (clientId: string, rows: number): Promise<string> =>
  system.sql(`INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id)
    SELECT '${clientId}', 'subject', lower(hex(sipHash128(number))), ${DAY_0}, fromUnixTimestamp64Micro(${DAY_0}), 'r'
    FROM numbers(${rows})`);

const storeLargeRequests = (): Promise<string> =>
  system.sql(`INSERT INTO data_subject_requests
    (client_id, request_id, version, request_type, identifiers, named, status, received_at, updated_at)
    SELECT concat('bulk-', toString(number % 7)), concat(lower(hex(MD5(toString(number)))), '-0'), ${2 ** 48},
      'ERASURE', concat('[', arrayStringConcat(arrayMap(at -> concat('{"type":"chatter_id","value":"',
        repeat(hex(MD5(concat(toString(number), '-', toString(at)))), 8), '"}'), range(100)), ','), ']'),
      100, 'queued', now64(3) - 60, now64(3) - 60 FROM numbers(${LARGE_REQUESTS}) SETTINGS max_block_size = 500`);

beforeAll(async () => {
  system = await startSystem("exhaustion");
  attacker = await system.key("attacker", ["export", "compliance"]);
  for (let at = 0; at < NEIGHBOURS; at += 1)
    neighbours.push(await system.key(`neighbour-${at}`, ["export", "compliance"]));
  accomplice = await system.key("accomplice");
  for (const client of ["attacker", "accomplice"]) await storeMessages(client, LOUD_RECORDS);
  for (let at = 0; at < NEIGHBOURS; at += 1) await storeMessages(`neighbour-${at}`, 300);
  await storeSuppressions("attacker", SUPPRESSIONS);
  await storeSuppressions("accomplice", SUPPRESSIONS_HELD);
  await storeLargeRequests();
  const placeOf = createPlaces(system.partitions);
  send = (id) => {
    const data = { _id: id, date_created: "2026-01-01T12:00:00Z", chatter_id: `of-${id}` };
    const time = "2026-01-02T00:00:00Z";
    const event = handMade({ kind: "conversation", client: "neighbour-0", id, time, data });
    return sendEvents({ producer: system.producer, placeOf }, [event]);
  };
}, DEADLINE_MS);
afterAll(() => system?.stop());

const stream = async (): Promise<IncomingMessage> => {
  const headers = { authorization: `Bearer ${attacker}`, accept: "application/x-ndjson" };
  const request = get(`${system.apiUrl}/v2/export/messages?${WINDOW}`, { headers, agent: false });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  response.on("error", () => undefined);
  return response;
};

const beLoud = async (signal: AbortSignal): Promise<Map<number, number>> => {
  const statuses = new Map<number, number>();
  const open = await Promise.all(Array.from({ length: STREAMS }, stream));
  const sips = setInterval(() => {
    for (const response of open) response.read(16 * 1024);
  }, 100);
  const work = async (): Promise<void> => {
    while (!signal.aborted) {
      const { status } = await ask(pageOf(1_000), { key: accomplice, signal }).catch(() => ({ status: 0 }));
      if (status !== 0) statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: PAGES }, work));
  clearInterval(sips);
  for (const response of open) response.destroy();
  return statuses;
};

const fillRequests = async (): Promise<{ taken: number; refused: Answer }> => {
  for (let taken = 0; ; taken += 1) {
    const identifiers = Array.from({ length: 100 }, (_, at) => ({
      type: "chatter_id",
      value: `nobody-${taken}-${at}`,
    }));
    const body = { type: "ERASURE", identifiers };
    const answer = await ask("/api/v2/data-subject-request", { key: attacker, body });
    if (answer.status !== 200) return { taken, refused: answer };
  }
};

const median = (answers: readonly Answer[]): number =>
  answers.map(({ ms }) => ms).sort((a, b) => a - b)[Math.floor(answers.length / 2)] ?? 0;
const slowest = (answers: readonly Answer[]): number => Math.max(...answers.map(({ ms }) => ms));

const askNeighbours = async (signal: AbortSignal) => {
  const answers: Answer[] = [];
  let refusals = 0;
  const send: Send = (url, init) => fetchPatiently(url, init, () => void (refusals += 1));
  while (!signal.aborted) for (const key of neighbours) answers.push(await ask(pageOf(100), { key, send }));
  return { answers, refusals };
};

/** In seconds. */
const workBeside = async (name: string): Promise<{ ingested: number; erased: number }> => {
  const [key = ""] = neighbours;
  const seconds = (since: number): number => Math.round((performance.now() - since) / 100) / 10;
  const sentAt = performance.now();
  await send(name);
  const list = `/api/v2/export/conversations?${WINDOW}`;
  const isListed = async (): Promise<boolean> => (await ask(list, { key })).text.includes(`"${name}"`);
  await until("the record is read", DEADLINE_MS, isListed, 250);
  const ingested = seconds(sentAt);
  const askedAt = performance.now();
  const body = { type: "ERASURE", identifiers: [{ type: "chatter_id", value: `of-${name}` }] };
  expect(await ask("/api/v2/data-subject-request", { key, body })).toMatchObject({ status: 200 });
  await until("the record is erased", DEADLINE_MS, async () => !(await isListed()), 250);
  return { ingested, erased: seconds(askedAt) };
};

it("no client's suppressions, requests, streams or pages stop ingest, jobs or the others", {
  timeout: 3 * DEADLINE_MS,
}, async () => {
  const quietEnd = new AbortController();
  limited = [await startLimited("export-api", {})];
  const quietAsked = askNeighbours(quietEnd.signal);
  setTimeout(() => quietEnd.abort(), 2_000);
  const { answers: quiet } = await quietAsked;

  // Suppressions and requests exist when ingest and jobs start, as after a restart.
  const end = new AbortController();
  const loud = beLoud(end.signal);
  const asked = askNeighbours(end.signal);
  const startedAt = performance.now();
  limited = [...limited, ...(await Promise.all([startLimited("ingest"), startLimited("jobs")]))];
  const started = Math.round(performance.now() - startedAt);
  const [filled, work] = await Promise.all([fillRequests(), workBeside("first")]);
  await until("all requests are completed", DEADLINE_MS, async () => {
    const open = "SELECT count() FROM data_subject_requests FINAL WHERE status != 'completed'";
    return (await system.sql(open)) === "0";
  });
  const later = await workBeside("second");
  end.abort();
  const [{ answers: beside, refusals }, statuses] = await Promise.all([asked, loud]);

  const memory = limited.map(({ name, process, megabytes }) => ({
    name,
    peak: Math.round(peakMegabytes(process.pid)),
    megabytes,
  }));
  console.log(
    JSON.stringify({
      suppressions: SUPPRESSIONS + SUPPRESSIONS_HELD,
      largeRequests: LARGE_REQUESTS,
      requestsTaken: filled.taken,
      startedMs: started,
      work,
      later,
      quiet: { pages: quiet.length, median: Math.round(median(quiet)), slowest: Math.round(slowest(quiet)) },
      beside: {
        pages: beside.length,
        median: Math.round(median(beside)),
        slowest: Math.round(slowest(beside)),
        refusals,
      },
      pagesOfAccomplice: Object.fromEntries(statuses),
      memory,
    }),
  );
  expect(filled.taken).toBeGreaterThan(0);
  expect(statuses.get(200) ?? 0).toBeGreaterThan(0);
  expect(filled.refused).toMatchObject({ status: 429, text: expect.stringContaining("per 1 day") });
  expect(new Set([...quiet, ...beside].map(({ status }) => status))).toEqual(new Set([200]));
  expect(refusals).toBeLessThan(beside.length * REFUSED_SHARE);
  expect(median(beside)).toBeLessThan(ANSWER_MS);
  expect(slowest(beside)).toBeLessThan(PATIENCE_MS);
  expect([...statuses.keys()].filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
  for (const { process, name, megabytes } of limited) {
    // A process that has ended has no metrics, and none is restarted here.
    expect(await readMetric(process.metricsUrl, "process_resident_memory_bytes"), name).toBeGreaterThan(0);
    expect(peakMegabytes(process.pid), name).toBeLessThan(megabytes);
  }
});
