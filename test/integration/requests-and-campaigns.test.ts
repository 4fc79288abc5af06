import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type DataSubject, FINISHED_STATUSES, type RequestStatus } from "@conversation-export/domain";
import {
  type CampaignRow,
  createCampaignStore,
  createRequestStore,
  migrate,
  type RequestPlace,
  type RequestStore,
  type RequestSummary,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bySize } from "../system/size.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { createSessions } from "../system/warehouse-sessions.ts";

const LARGE_REQUESTS = bySize(2_000, 5_000);
const SECRET = "a secret of the tests";
const START = Date.UTC(2026, 9, 4);
const noor: DataSubject = { email: "noor@example.com", identifiers: [] };

let stack: TestStack;
let clock = START;
let intake: RequestStore;
let jobs: RequestStore;
let intakeAt: (now: () => number) => RequestStore;
const sessions = createSessions();

const now = (): number => (clock += 1_000);
/** For a call that arrives at one instant and whose first query is answered at another. */
const slowIntake = (arrived: number, answered: number): RequestStore => {
  let at = arrived;
  const session = sessions.open(stack.clickhouse.url("intake"));
  const rows: typeof session.rows = (...question) => {
    at = answered;
    return session.rows(...question);
  };
  const slow = { ...session, with: () => ({ ...session, rows }) };
  return createRequestStore({ session: slow, now: () => at, idSecret: SECRET });
};
const sql = (statement: string) => runSql(stack.clickhouse.url("migrator"), statement);

beforeAll(async () => {
  stack = await startTestStack({ servers: ["clickhouse"] });
  await migrate({ url: stack.clickhouse.url("migrator") });
  const common = { now, idSecret: SECRET };
  const session = sessions.open(stack.clickhouse.url("intake"));
  intakeAt = (instant) => createRequestStore({ ...common, session, now: instant });
  intake = intakeAt(now);
  jobs = createRequestStore({ ...common, session: sessions.open(stack.clickhouse.url("migrator")) });
});

afterAll(async () => {
  await sessions.close();
  await stack?.stop();
});

describe("requests of data subjects", () => {
  it("are stored once, also when ten come at once", async () => {
    const subject: DataSubject = {
      email: null,
      identifiers: [{ type: "chatter_id", value: "at once '\\\n🙂" }],
    };
    let at = START;
    const hasty = intakeAt(() => (at += 50));
    const opened = await Promise.all(Array.from({ length: 10 }, () => hasty.open("acme", subject)));
    expect(new Set(opened.map(({ requestId }) => requestId)).size).toBe(1);
    const id = opened[0]?.requestId ?? "";
    const found = await intake.find("acme", id);
    expect(found).toMatchObject({ clientId: "acme", requestId: id, subject, status: "received" });
    // Of rows written at once the first stays, so that its instants do not move.
    expect(found?.receivedAt).toBe(Math.min(...opened.map(({ receivedAt }) => receivedAt)));
  });

  it("are one by when they arrive, however long ClickHouse takes to answer", async () => {
    const subject: DataSubject = { email: "slow@example.com", identifiers: [] };
    const first = await intakeAt(() => START).open("acme", subject);
    const second = await slowIntake(START + 900, START + 5_000).open("acme", subject);
    expect(second.requestId).toBe(first.requestId);
  });

  it("cover what each of them came for when ClickHouse has the first for longer than a second", async () => {
    const subject: DataSubject = { email: "together@example.com", identifiers: [] };
    const opened = await Promise.all(
      [START, START + 3_000].map((arrived) => slowIntake(arrived, START + 5_000).open("acme", subject)),
    );
    const [first, second] = opened.map(({ requestId }) => requestId);
    await jobs.setStatus("acme", first ?? "", "completed");
    expect(await intake.find("acme", first ?? "")).toMatchObject({ receivedAt: START });
    expect(await intake.find("acme", second ?? "")).toMatchObject({
      receivedAt: START + 3_000,
      status: "received",
    });
  });

  it("belong to one client", async () => {
    const one = await intake.open("acme", noor);
    const other = await intake.open("globex", noor);
    expect(other.requestId).not.toBe(one.requestId);
    expect(await intake.find("globex", one.requestId)).toBeNull();
    expect(await intake.setStatus("globex", one.requestId, "running")).toBe(false);
  });

  it("have ids that nobody can compute from the person without the secret", async () => {
    const idSecret = "another secret of the tests";
    const session = sessions.open(stack.clickhouse.url("intake"));
    const [other, same] = [0, 1].map(() => createRequestStore({ session, now: () => START, idSecret }));
    const subject: DataSubject = { email: "guessed@example.com", identifiers: [] };
    const opened = await intake.open("acme", subject);
    const foreign = await other?.open("acme", subject);
    expect(foreign?.requestId).not.toBe(opened.requestId);
    expect((await same?.open("acme", subject))?.requestId).toBe(foreign?.requestId);
    expect(await other?.find("acme", opened.requestId)).toMatchObject({ subject });
  });

  it("are new ones later than a second, so that nothing created in between stays", async () => {
    const ids: string[] = [];
    const statuses = ["queued", "running", "awaiting_approval", "completed", "failed", "refused"] as const;
    let at = START;
    for (const status of statuses) {
      const opened = await intakeAt(() => at).open("initech", noor);
      expect(opened).toMatchObject({ status: "received", receivedAt: at });
      ids.push(opened.requestId);
      await jobs.setStatus("initech", opened.requestId, status);
      const again = await intakeAt(() => at + 999).open("initech", noor);
      if (FINISHED_STATUSES.includes(status)) ids.push(again.requestId);
      else expect(again).toMatchObject({ requestId: opened.requestId, status, receivedAt: at });
      at += 2_000;
    }
    expect(new Set(ids).size).toBe(9);
    expect(ids.every((id) => /^[0-9a-f]{32}-\d{10}$/.test(id))).toBe(true);
  });

  it("are refused by whom they are counted for: unfinished ones, and what was named since midnight", async () => {
    const of = (name: string, count: number): DataSubject => ({
      email: `${name}@example.com`,
      identifiers: Array.from({ length: count }, (_, at) => ({ type: "chatter_id", value: `${name}-${at}` })),
    });
    const seen: unknown[] = [];
    const admit = (usage: unknown): void => void seen.push(usage);
    const first = await intake.open("counted", of("a", 3), admit);
    const done = await intake.open("counted", of("b", 1), admit);
    await jobs.setStatus("counted", done.requestId, "completed");
    await intake.open("counted-too", of("a", 50));
    // The same content within a second does not ask for admission.
    await intakeAt(() => first.receivedAt + 999).open("counted", of("a", 3), admit);
    await intake.open("counted", of("c", 0), admit);
    clock += 86_400_000;
    const refuse = (usage: unknown): void => {
      admit(usage);
      throw new Error("too many");
    };
    await expect(intake.open("counted", of("d", 0), refuse)).rejects.toThrow("too many");
    expect(seen).toEqual([
      { open: 0, namedToday: 0 },
      { open: 1, namedToday: 4 },
      { open: 1, namedToday: 6 },
      { open: 2, namedToday: 0 },
    ]);
    expect(await sql("SELECT count() FROM data_subject_requests FINAL WHERE client_id = 'counted'")).toBe(
      "3\n",
    );
  });

  it("are listed by the newest, in pages, to their client alone", async () => {
    const made: string[] = [];
    for (const name of ["a", "b", "c", "d", "e"]) {
      const { requestId } = await intake.open("listed", { email: `${name}@example.com`, identifiers: [] });
      made.unshift(requestId);
    }
    await intake.open("listed-too", noor);
    await jobs.setStatus("listed", made[1] ?? "", "completed");
    const seen: string[] = [];
    let after: RequestPlace | null = null;
    for (;;) {
      const page: readonly RequestSummary[] = await intake.list("listed", after, 2);
      seen.push(...page.map(({ requestId }) => requestId));
      after = page.at(-1) ?? null;
      if (page.length < 2) break;
    }
    expect(seen).toEqual(made);
    const statuses = (await intake.list("listed", null, 10)).map(({ status }) => status);
    expect(statuses).toEqual(["received", "completed", "received", "received", "received"]);
    // All at one instant: the id decides.
    await sql(
      "ALTER TABLE data_subject_requests UPDATE received_at = '2026-10-04' WHERE client_id = 'listed' SETTINGS mutations_sync = 2",
    );
    const [first, second] = await intake.list("listed", null, 2);
    expect((await intake.list("listed", first ?? null, 1))[0]).toEqual(second);
    expect(await intake.list("listed", null, 10)).toHaveLength(5);
  });

  it("never go back, in whatever order states arrive", async () => {
    const { requestId, subject } = await intake.open("hooli", noor);
    const read = async () => (await intake.find("hooli", requestId))?.status;
    const steps: [RequestStatus, RequestStatus][] = [
      ["running", "running"],
      ["queued", "running"],
      ["received", "running"],
      ["completed", "completed"],
      ["failed", "completed"],
      ["running", "completed"],
    ];
    for (const [given, stored] of steps) {
      await jobs.setStatus("hooli", requestId, given);
      expect(await read(), given).toBe(stored);
    }
    // From a process that read before all this and writes after it.
    await sql(`INSERT INTO data_subject_requests
      SELECT * REPLACE ('received' AS status, bitAnd(version, ${2 ** 48 - 1}) AS version)
      FROM data_subject_requests WHERE client_id = 'hooli' LIMIT 1`);
    expect(await read()).toBe("completed");
    expect((await intake.find("hooli", requestId))?.subject).toEqual(subject);
    await sql("OPTIMIZE TABLE data_subject_requests FINAL");
    expect(await read()).toBe("completed");
    expect(await sql("SELECT count() FROM data_subject_requests WHERE client_id = 'hooli'")).toBe("1\n");
  });

  it("are found by their key, not by reading all", async () => {
    await sql(`INSERT INTO data_subject_requests (client_id, request_id, identifiers, status)
      SELECT 'umbrella', concat(lower(hex(MD5(toString(number)))), '-0'), '[]', 'completed' FROM numbers(100000)`);
    const { requestId } = await intake.open("umbrella", noor);
    const plan = await sql(`EXPLAIN indexes = 1 SELECT * FROM data_subject_requests FINAL
      WHERE client_id = 'umbrella' AND request_id >= '${requestId}' AND request_id < '${requestId}.'`);
    expect(plan).toMatch(/Granules: [12]\/\d\d/);
  });

  it("say what is wrong without what they hold", async () => {
    await sql("ALTER TABLE data_subject_requests ADD CONSTRAINT planted CHECK email != 'secret@example.com'");
    const error: unknown = await intake
      .open("acme", { email: "secret@example.com", identifiers: [] })
      .catch((thrown: unknown) => thrown);
    await sql("ALTER TABLE data_subject_requests DROP CONSTRAINT planted");
    expect(error).toMatchObject({ code: "warehouse_refused_data", retryable: false });
    expect((error as Error).cause).toBeUndefined();
    expect(String((error as Error).stack)).not.toContain("secret");
  });
});

describe("many large open requests", () => {
  const READER = `
    import { createErasurePreview, createRequestCompletion, createSession, subjectsOfRequest }
      from "@conversation-export/warehouse";
    const session = createSession({ url: process.env.URL, application: "test", maxConnections: 4 });
    const requests = createRequestCompletion({ session, now: Date.now });
    const store = createErasurePreview({ session });
    const run = { id: "bulk", erases: true };
    const seenAtFirst = Math.round(process.memoryUsage().heapUsed / 1e6);
    const open = await requests.open(Date.now());
    const seen = { open: open.count, requests: 0, subjects: 0, atOnce: 0, heapAtFirstMB: seenAtFirst };
    let subjects = [];
    const take = async (some) => {
      seen.requests += some.length;
      seen.atOnce = Math.max(seen.atOnce, some.length);
      subjects.push(...some.flatMap(subjectsOfRequest));
      if (subjects.length < 5000) return;
      await store.note(run, subjects);
      subjects = [];
    };
    for (const clientId of await requests.waitingClients()) await requests.due({ clientId }, take);
    await store.note(run, subjects);
    await requests.begin(run);
    await store.hide(run);
    await requests.noteHidden(run);
    await store.persons(run, async (some) => { seen.subjects += some.length; });
    await requests.complete(run);
    seen.left = (await requests.open(Date.now())).count;
    seen.rssMB = Math.round(process.resourceUsage().maxRSS / 1024);
    await session.close();
    console.log(JSON.stringify(seen));
  `;

  it("are counted and read in pieces: a process with a heap of 96 MB bears them", async () => {
    await sql("TRUNCATE TABLE data_subject_requests");
    await sql(`INSERT INTO data_subject_requests
      (client_id, request_id, version, request_type, identifiers, named, status, received_at, updated_at)
      SELECT concat('bulk-', toString(number % 7)), concat(lower(hex(MD5(toString(number)))), '-0'), ${2 ** 48},
        'ERASURE', concat('[', arrayStringConcat(arrayMap(at -> concat('{"type":"chatter_id","value":"',
          repeat(hex(MD5(concat(toString(number), '-', toString(at)))), 8), '"}'), range(100)), ','), ']'),
        100, 'queued', now64(3) - 60, now64(3) - 60 FROM numbers(${LARGE_REQUESTS}) SETTINGS max_block_size = 500`);
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--max-old-space-size=96", "--input-type=module", "--eval", READER],
      { cwd: import.meta.dirname, env: { ...process.env, URL: stack.clickhouse.url("jobs") } },
    );
    const seen = JSON.parse(stdout) as Record<string, number>;
    console.log(`${LARGE_REQUESTS} requests of 30 KB: ${stdout.trim()}`);
    expect(seen).toMatchObject({
      open: LARGE_REQUESTS,
      requests: LARGE_REQUESTS,
      subjects: 100 * LARGE_REQUESTS,
      left: 0,
    });
    expect(seen["rssMB"]).toBeLessThan(320);
    expect(await sql("SELECT uniqExact(status, identifiers) FROM data_subject_requests FINAL")).toBe("1\n");
  });
});

describe("campaigns", () => {
  it("are read by the reader, and the later change wins also when the clock is behind", async () => {
    const session = sessions.open(stack.clickhouse.url("migrator"));
    const reading = createCampaignStore({ session: sessions.open(stack.clickhouse.url("lookup")), now });
    const writing = createCampaignStore({ session, now });
    const behind = createCampaignStore({ session, now: () => START - 1_000_000 });
    const campaign: CampaignRow = {
      clientId: "acme",
      key: "spring",
      languages: ["en", "pt-BR"],
      deleted: false,
      createdAt: "2026-10-01T00:00:00.000Z",
    };
    expect(await reading.find("acme", "spring")).toBeNull();
    await writing.save(campaign);
    await writing.save({ ...campaign, clientId: "globex", languages: [] });
    expect(await reading.find("acme", "spring")).toEqual(campaign);
    await behind.save({ ...campaign, deleted: true });
    expect(await reading.find("acme", "spring")).toEqual({ ...campaign, deleted: true });
    expect((await reading.list("globex")).map(({ key }) => key)).toEqual(["spring"]);
    expect(await reading.list(null)).toHaveLength(2);
    await expect(reading.save(campaign)).rejects.toMatchObject({ causeName: /ACCESS_DENIED|READONLY/ });
  });
});
