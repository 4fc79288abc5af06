import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { createInterface } from "node:readline";
import { backfillJob, erasureJobId, type JobClient } from "@conversation-export/queue";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createPlaces, sendEvents } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { findInActiveParts } from "../compare/part-bytes.ts";
import { startJobClient, workOff } from "../system/operator-jobs.ts";
import { requestErasure } from "../system/request-erasure.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { type BusEvent, createSample } from "../sample/index.ts";

const CLIENT = "acme";
const PEOPLE = bySize(6, 100);
/** With five messages each: a million records at full size. */
const CONVERSATIONS = bySize(200, 170_000);
const DEADLINE = bySize(60_000, 1_200_000);
/** From the start of their job. */
const HIDDEN_WITHIN = bySize(10_000, 60_000);
const ENV = { ERASURE_INTERVAL_SECONDS: "2" };
/** In every text and id of persons to erase, never in record ids, which suppressions keep. */
const TRACE = "zqtrace";
/** The same for one person who stays: the search must find it. */
const KEPT = "zqkept";

let system: System;
let client: JobClient;
let key: string;

beforeAll(async () => {
  system = await startSystem("test-erasure-scale");
  client = await startJobClient(system.stack.redis.url);
  key = await system.key(CLIENT, ["export", "end_users", "compliance"]);
});
afterAll(async () => {
  await client?.stop();
  await system?.stop();
});

const DAY = 86_400_000;
const FIRST_DAY = Date.UTC(2026, 9, 4);

const createdOf = (index: number): string =>
  new Date(FIRST_DAY + ((index * 7919 * 60_000) % (7 * DAY))).toISOString();

const personNamed = (name: string, index: number): BusEvent[] => {
  const created = createdOf(index);
  const event = (kind: BusEvent["kind"], id: string, minutes: number, data: Record<string, unknown>) => {
    const own =
      kind === "end_user" ? { end_user_id: id, created_at: created } : { _id: id, date_created: created };
    const time = new Date(Date.parse(created) + 5 * DAY + minutes * 60_000).toISOString();
    return handMade({ kind, client: CLIENT, id, time, data: { ...own, ...data } });
  };
  const conversation = (minutes: number, text: string) =>
    event("conversation", `r${index}-c`, minutes, {
      chatter_id: `${name}-chatter`,
      end_user_id: `${name}-user`,
      inquiry_summary: `${name} ${text}`,
      handoffs: [{ id: `${name}-h`, handoff_id: null, date_created: created, reasoning: `${name} ${text}` }],
    });
  const message = (id: string, data: Record<string, unknown>) =>
    event("message", `r${index}-${id}`, 1, {
      message_data: { _type: "text", body: `${name} ${id}` },
      ...data,
    });
  return [
    event("end_user", `${name}-user`, 0, { profile: { email: `${name}@example.com`, first_name: name } }),
    conversation(1, "asked"),
    message("m1", { conversation_id: `r${index}-c`, chatter_id: `${name}-chatter` }),
    message("m2", { conversation_id: `r${index}-c` }),
    conversation(2, "asked again"),
  ];
};

const requestOf = (name: string, index: number): Record<string, unknown> =>
  [
    { email: `${name.toUpperCase()}@example.com` },
    {
      identifiers: [
        { type: "chatter_id", value: `${name}-chatter` },
        { type: "end_user_id", value: `${name}-user` },
      ],
    },
    { identifiers: [{ type: "end_user_id", value: `${name}-user` }] },
  ][index % 3] ?? {};

const names = Array.from({ length: PEOPLE }, (_, index) => `${TRACE}${index}`);

const events = function* (seed: string): Generator<BusEvent> {
  const sample = createSample({
    seed,
    conversations: CONVERSATIONS,
    messagesPerConversation: 5,
    exportsPerConversation: 1.2,
    clients: [CLIENT],
    endUsers: bySize(50, 5_000),
    poisonShare: 0,
    nullShare: 0,
  });
  const every = Math.floor(sample.totals().events / (PEOPLE + 2));
  const waiting = [[KEPT, PEOPLE] as const, ...names.map((name, index) => [name, index] as const)].map(
    ([name, index]) => personNamed(name, index),
  );
  let sent = 0;
  for (const event of sample) {
    yield event;
    sent += 1;
    if (sent % every === 0) yield* waiting.pop() ?? [];
  }
  expect(waiting).toEqual([]);
};

const ask = async (path: string, headers: Record<string, string> = {}): Promise<Response> => {
  const url = new URL(path, system.apiUrl).href;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${key}`, ...headers } });
  if (answer.status !== 200) throw new Error(`${answer.status} for ${url}: ${await answer.text()}`);
  return answer;
};

const WINDOW = "created_since=2026-01-01T00:00:00Z&created_to=2027-01-01T00:00:00Z";
const UPDATED = WINDOW.replaceAll("created", "updated");
const EXPORT = "/api/v2/export";
const LINES = [
  `${EXPORT}/conversations?${WINDOW}`,
  `${EXPORT}/conversations?${UPDATED}`,
  `${EXPORT}/messages?${WINDOW}`,
];
const PAGES = [
  `${EXPORT}/conversations?${WINDOW}&page_size=10000`,
  `${EXPORT}/conversations?${UPDATED}&page_size=10000`,
  `${EXPORT}/messages?${WINDOW}&page_size=10000`,
  "/api/v2/end-users/?limit=1000",
  ...["v1", "v1.1", "v1.2"].flatMap((version) =>
    ["conversations", "messages"].map((list) => `/data_api/${version}/${list}?${WINDOW}&page_size=10000`),
  ),
];

type Seen = { records: number; readonly traces: Set<string>; readonly hash: string };

const readLines = async (path: string): Promise<Seen> => {
  const answer = await ask(path, { accept: "application/x-ndjson" });
  const hash = createHash("sha256");
  const traces = new Set<string>();
  let records = 0;
  let last = "";
  for await (const line of createInterface({ input: Readable.fromWeb(answer.body as never) })) {
    if (line.startsWith('{"trailer":')) {
      last = line;
      continue;
    }
    if (line.includes(TRACE)) traces.add(line);
    else {
      records += 1;
      hash.update(line.replace(/"record_last_updated":"[^"]*"/, "")).update("\n");
    }
  }
  expect(last, path).not.toBe("");
  return { records, traces, hash: hash.digest("hex") };
};

const pagesOf = async function* (path: string): AsyncGenerator<string> {
  for (let next: string | null = path; next !== null; ) {
    const answer = await ask(next);
    const text = await answer.text();
    yield text;
    next = /"next_page_ur[il]":"([^"]*)"/.exec(text.slice(-2_000))?.[1] ?? null;
  }
};

const endUsers = async (): Promise<string> => {
  const people: unknown[] = [];
  for await (const text of pagesOf("/api/v2/end-users/?limit=1000"))
    people.push(...(JSON.parse(text) as { data: { end_user_id: string }[] }).data);
  return people
    .map((person) => JSON.stringify(person))
    .filter((text) => !text.includes(TRACE))
    .join("\n");
};

const readOthers = async () => {
  const lists = [];
  let traces = 0;
  for (const path of LINES) {
    const { records, hash, traces: found } = await readLines(path);
    lists.push({ path, records, hash });
    traces += found.size;
  }
  return { others: { lists, endUsers: await endUsers() }, traces };
};

const erasuresBegunAt = async (): Promise<number> => {
  const jobs = await client.list({ names: ["erasure"], limit: 1_000 });
  const ofRequests = jobs.filter(({ id }) => id.startsWith(erasureJobId("")));
  return Math.min(...ofRequests.flatMap(({ lastStartedAt }) => lastStartedAt?.getTime() ?? []));
};

const isSeen = async (index: number): Promise<boolean> => {
  const created = createdOf(index);
  const end = new Date(Date.parse(created) + 1_000).toISOString();
  for (const list of ["conversations", "messages"]) {
    const page = await ask(`${EXPORT}/${list}?created_since=${created}&created_to=${end}`);
    if ((await page.text()).includes(TRACE)) return true;
  }
  return false;
};

it(
  `leaves no trace of ${PEOPLE} people, whatever is read again, and everybody else as they were`,
  async () => {
    const startedAt = performance.now();
    const say = (what: string): void =>
      console.log(`${((performance.now() - startedAt) / 1000).toFixed(0)} s: ${what}`);
    const seed = seedOfRun("erasure-scale");
    let ingest = await system.service("ingest", ENV);
    await system.service("export-api");
    let sent = 0;
    await sendEvents(
      { producer: system.producer, placeOf: createPlaces(system.partitions) },
      events(seed),
      (count) => {
        sent = count;
      },
    );
    await system.caughtUp(DEADLINE);
    const records = await system.sql(
      "SELECT sum(n) FROM (SELECT uniqExact(conversation_id) AS n FROM conversations UNION ALL SELECT uniqExact(message_id) FROM messages UNION ALL SELECT uniqExact(end_user_id) FROM end_users)",
    );
    say(`${sent} events are ingested, ${records} records`);
    const before = await readOthers();
    // A conversation in two lists, and two messages.
    expect(before.traces).toBe(PEOPLE * 4);

    await system.service("jobs", ENV);
    const requests = await Promise.all(
      names.map((name, index) => requestErasure(system.apiUrl, key, requestOf(name, index))),
    );
    say("the requests are accepted");
    const acceptedAt = performance.now();
    let lastSeenAt = 0;
    await until("nobody is seen", DEADLINE, async () => {
      for (const index of names.keys()) {
        const askedAt = Date.now();
        if (!(await isSeen(index))) continue;
        lastSeenAt = askedAt;
        return false;
      }
      return true;
    });
    say(`nobody is seen ${((performance.now() - acceptedAt) / 1000).toFixed(1)} s later`);
    const begunAt = await erasuresBegunAt();
    expect(lastSeenAt - begunAt).toBeLessThan(HIDDEN_WITHIN);
    expect(await readOthers()).toEqual({ ...before, traces: 0 });
    for (const request of requests) await request.completed(DEADLINE);
    const longest = await system.sql(
      "SELECT max(dateDiff('millisecond', received_at, hidden_at)) FROM data_subject_requests FINAL",
    );
    say(`the requests are completed, all were hidden within ${Number(longest) / 1_000} s`);
    expect(await readOthers()).toEqual({ ...before, traces: 0 });

    await ingest.kill("SIGTERM");
    ingest = await system.service("ingest", { ...ENV, KAFKA_GROUP_ID: "from-the-start" });
    await system.caughtUp(DEADLINE, "from-the-start");
    say("everything is replayed");
    const { events: read, records: corrected } = await workOff(
      client,
      backfillJob,
      backfillJob.data.parse({ source: { kind: "landing" } }),
    );
    say(`${read.read} events are backfilled from landing, ${corrected.different} records differ`);
    expect(read.read).toBeGreaterThan(CONVERSATIONS);
    expect(corrected.different).toBe(0);

    expect(await readOthers()).toEqual({ ...before, traces: 0 });
    for (const path of PAGES) {
      let pages = 0;
      let hasKept = false;
      for await (const text of pagesOf(path)) {
        pages += 1;
        expect(text.includes(TRACE), path).toBe(false);
        hasKept ||= text.includes(KEPT);
      }
      expect(hasKept, path).toBe(true);
      expect(pages, path).toBeGreaterThan(0);
    }
    say("all pages are read");
    const { found, searchedBytes } = await findInActiveParts(system.stack.clickhouse.url("migrator"), [
      TRACE,
      TRACE.toUpperCase(),
      KEPT,
    ]);
    say(`${(searchedBytes / 1e6).toFixed(0)} MB of active parts are searched`);
    // Deletions stay in `changes` for a month.
    const changes = await system.sql("SELECT toString(uuid) FROM system.tables WHERE name = 'changes'");
    const elsewhere = [found[TRACE], found[TRACE.toUpperCase()]]
      .flat()
      .filter((file) => file?.includes(changes) === false);
    expect(elsewhere).toEqual([]);
    const tables = new Set(found[KEPT]?.map((file) => /store\/\w+\/([\w-]+)/.exec(file)?.[1]));
    expect(tables.size).toBeGreaterThan(4);
  },
  4 * DEADLINE,
);
