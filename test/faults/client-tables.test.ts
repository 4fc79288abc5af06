import { once } from "node:events";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@conversation-export/client";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, expect, it } from "vitest";
import { walk } from "../compare/walk.ts";
import { createSample } from "../sample/index.ts";
import { handMade } from "../sample/hand-made.ts";
import { createRestless, personOf } from "../sample/restless.ts";
import { createRandom, type Random } from "../sample/values/random.ts";
import { changesStable } from "../system/changes-stable.ts";
import { type Ended, killClientCommands, startClientCommand } from "../system/client-command.ts";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { listen } from "../system/listen.ts";

const CLIENT = "acme";
const LISTS = ["conversations", "messages", "end_users"] as const;
type List = (typeof LISTS)[number];
const FORMATS = ["parquet", "csv"] as const;
type Format = (typeof FORMATS)[number];
const KILLS = bySize(4, 60);
const DEADLINE_MS = bySize(90_000, 600_000);

let system: System;
let random: Random;
let delivery: Delivery;
let key: string;
let seed: string;

const folderOf = (format: Format): string => join(system.logFolder, `tables-${format}`);
const fileOf = (format: Format, list: List): string => join(folderOf(format), `${list}.${format}`);

const oddRecords = () => {
  const created = '"date_created":"2026-10-05T00:00:00Z"';
  const big = '{"n":123456789012345678901234567890,"f":1.10,"e":1E5,"s":"a\\"},{[,"}';
  const made = (kind: "conversation" | "message" | "end_user", id: string, data: string) =>
    handMade({ kind, client: CLIENT, id, time: new Date().toISOString(), data });
  const long = "long \\u00e9 ".repeat(9_000);
  return [
    made(
      "conversation",
      "odd",
      `{"_id":"odd",${created},"csat":${big},"agent_handle_time":1e25,"language":""}`,
    ),
    made(
      "conversation",
      "long",
      `{"_id":"long",${created},"inquiry_summary":"=1+1,\\n\\"${long}","variables":${big}}`,
    ),
    made(
      "message",
      "odd",
      `{"_id":"odd","conversation_id":"odd",${created},"message_data":${big},"review":5.0}`,
    ),
    made(
      "end_user",
      "odd",
      `{"end_user_id":"odd","created_at":"2026-10-05T00:00:00Z","profile":{"email":"a@b.c","metadata":${big}}}`,
    ),
    made("end_user", "bare", '{"end_user_id":"bare","created_at":"2026-10-05T00:00:00Z"}'),
  ];
};

const client = () => createClient({ baseUrl: system.apiUrl, apiKey: key });
const changesAreStable = (): Promise<void> => changesStable(system, client(), DEADLINE_MS);

beforeAll(async () => {
  seed = seedOfRun("client-tables");
  random = createRandom(seed, "kills");
  system = await startSystem("test-client-tables");
  key = await system.key(CLIENT, ["export", "end_users", "compliance"]);
  delivery = createDelivery(system);
  const ingest = { BATCH_MAX_AGE_MS: "300", WATERMARK_INTERVAL_MS: "500" };
  await Promise.all([
    system.service("ingest", ingest),
    system.service("export-api"),
    system.service("jobs", NO_SCHEDULES),
  ]);
  const sample = { seed, conversations: bySize(800, 10_000), endUsers: 100, poisonShare: 0 };
  await delivery.send(createSample({ ...sample, clients: [CLIENT] }));
  await delivery.send([...oddRecords(), personOf(CLIENT, "gone", new Date().toISOString())].flat());
  await changesAreStable();
});
afterAll(async () => {
  killClientCommands();
  await system?.stop();
});

const start = (args: readonly string[], apiUrl = system.apiUrl) => startClientCommand({ key, apiUrl }, args);

const expectCode = ({ code, out, err }: Ended, expected: number): void =>
  expect(code, `${out}${err}`).toBe(expected);

const pullOf = (format: Format): readonly string[] => [
  "pull",
  "--to",
  `${format}:${folderOf(format)}`,
  "--file-bytes",
  "100000",
];

const expectEnd = async (args: readonly string[], code = 0): Promise<void> =>
  expectCode(await start(args).ended, code);

const query = async (sql: string): Promise<readonly (readonly unknown[])[]> => {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  try {
    await connection.run("SET TimeZone = 'UTC'");
    return (await connection.runAndReadAll(sql)).getRowsJson();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
};

const sourceOf = (format: Format, list: List): string =>
  format === "parquet"
    ? `read_parquet('${fileOf(format, list)}')`
    : `read_csv('${fileOf(format, list)}', header = true, all_varchar = true, allow_quoted_nulls = false)`;

const personIn = (format: Format): Promise<number[]> =>
  Promise.all(
    LISTS.map(async (list) => {
      const source = sourceOf(format, list);
      const [[count] = []] = await query(
        `SELECT count(*) FROM ${source} WHERE ${list === "end_users" ? "end_user_id" : "_id"} LIKE 'gone-%'`,
      );
      return Number(count);
    }),
  );

const expectWhole = async (format: Format): Promise<void> => {
  for (const list of LISTS)
    if (existsSync(fileOf(format, list)))
      expect(Number((await query(`SELECT count(*) FROM ${sourceOf(format, list)}`))[0]?.[0])).toBeGreaterThan(
        0,
      );
};

const isWriting = (format: Format): boolean => {
  const parts = join(folderOf(format), "pull.duckdb.parts");
  return existsSync(parts) && readdirSync(parts).some((name) => name.endsWith(`.${format}`));
};

const killPull = async (format: Format, whileWriting: boolean): Promise<"ended" | "writing" | "pulling"> => {
  const { child, ended } = start(pullOf(format));
  if (whileWriting) while (child.exitCode === null && !isWriting(format)) await sleep(1);
  await sleep(random.int(whileWriting ? 60 : 2_500));
  const writing = isWriting(format);
  child.kill("SIGKILL");
  const outcome = await ended;
  if (outcome.code === null) return writing ? "writing" : "pulling";
  expectCode(outcome, 0);
  return "ended";
};

const PATHS: Readonly<Record<List, string>> = {
  conversations:
    "/v2/export/conversations?created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z",
  messages: "/v2/export/messages?created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z",
  end_users: "/v2/end-users",
};

const interfaceFile = async (list: List): Promise<string> => {
  const answer = await fetch(system.apiUrl + PATHS[list], {
    headers: { authorization: `Bearer ${key}`, accept: "application/vnd.apache.parquet" },
  });
  expect(answer.status).toBe(200);
  const file = join(system.logFolder, `${list}-interface.parquet`);
  writeFileSync(file, new Uint8Array(await answer.arrayBuffer()));
  return `read_parquet('${file}')`;
};

const expectParquet = async (list: List): Promise<void> => {
  const [own, given] = [sourceOf("parquet", list), await interfaceFile(list)];
  const describe = (from: string) =>
    query(`SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM ${from})`);
  expect(await describe(own)).toEqual(await describe(given));
  for (const [one, other] of [
    [given, own],
    [own, given],
  ])
    expect(await query(`SELECT * FROM ${one} EXCEPT ALL SELECT * FROM ${other}`), list).toEqual([]);
};

const expectCsv = async (list: List): Promise<void> => {
  const records = (await walk(system.apiUrl + PATHS[list], key)).map(
    (text) => JSON.parse(text) as Record<string, unknown>,
  );
  const [first = {}] = records;
  const rows = await query(`SELECT * FROM ${sourceOf("csv", list)}`);
  const names = Object.keys(first);
  const valueOf = (text: unknown, value: unknown): unknown =>
    typeof value === "string" || text === null ? text : (JSON.parse(text as string) as unknown);
  const found = new Map(rows.map((row) => [row[0], row]));
  expect(rows).toHaveLength(records.length);
  expect(found.size).toBe(records.length);
  for (const record of records) {
    const row = found.get(Object.values(record)[0]) ?? [];
    expect(Object.fromEntries(names.map((name, at) => [name, valueOf(row[at], record[name])]))).toEqual(
      record,
    );
  }
};

it(
  "keeps files that are what the lists are, whatever changes, is erased or kills it",
  async () => {
    const changes = createRestless({ seed, client: CLIENT, records: 200, now: Date.now });
    const change = (count: number) => delivery.send(Array.from({ length: count }, () => changes().event));
    const killed: string[] = [];
    // On a slow machine too, one kill must hit the writing of a file.
    const isDone = (round: number) => round >= KILLS && (killed.includes("writing") || round >= 10 * KILLS);
    for (let round = 0; !isDone(round); round += 1) {
      await change(20);
      await Promise.all(
        FORMATS.map(async (format) => {
          killed.push(await killPull(format, round % 2 === 1));
          await expectWhole(format);
        }),
      );
    }
    console.log(`killed: ${killed.join(", ")}`);
    expect(killed).toContain("writing");
    await changesAreStable();

    await Promise.all(FORMATS.map((format) => expectEnd(pullOf(format))));
    for (const format of FORMATS) expect(await personIn(format)).toEqual([2, 2, 1]);
    const id = await client().requestErasure({ email: "gone@example.com" });
    await until("the request is completed", DEADLINE_MS, async () => {
      const { status } = await client().dataSubjectRequest(id);
      expect(status).not.toBe("failed");
      return status === "completed";
    });
    await changesAreStable();
    await until("the person is gone from the files", DEADLINE_MS, async () => {
      for (const format of FORMATS) await expectEnd(pullOf(format));
      const found = await Promise.all(FORMATS.map(personIn));
      return found.flat().every((count) => count === 0);
    });
    for (const list of LISTS) {
      await expectParquet(list);
      await expectCsv(list);
    }
    for (const format of FORMATS) {
      await expectEnd(["verify", "--to", `${format}:${folderOf(format)}`]);
      const before = LISTS.map((list) => statSync(fileOf(format, list)).ino);
      await expectEnd(pullOf(format));
      expect(LISTS.map((list) => statSync(fileOf(format, list)).ino)).toEqual(before);
    }
  },
  bySize(600_000, 45 * 60_000),
);

it("of two pulls at once the second is refused", async () => {
  const answering = Promise.withResolvers<void>();
  const held = createServer((socket) => {
    const onward = connect(Number(new URL(system.apiUrl).port), "127.0.0.1");
    for (const one of [socket, onward]) one.on("error", () => undefined);
    void answering.promise.then(() => socket.pipe(onward).pipe(socket));
  });
  const { port, close } = await listen(held);
  const asked = once(held, "connection");
  const pull = ["pull", "--to", `parquet:${join(system.logFolder, "tables-at-once")}`];
  const first = start(pull, Object.assign(new URL(system.apiUrl), { port }).href);
  await asked;
  try {
    await expectEnd(pull, 6);
  } finally {
    answering.resolve();
    void close();
  }
  expectCode(await first.ended, 0);
});
