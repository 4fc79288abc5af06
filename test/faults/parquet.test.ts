import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createClient } from "@conversation-export/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { walk } from "../compare/walk.ts";
import { preparePythonTools } from "../outside/python-tools.ts";
import {
  type Exact,
  isList,
  isNumber,
  isObject,
  member,
  parseExact,
  printExact,
} from "../reference/exact-json.ts";
import { createSample, type RecordKind } from "../sample/index.ts";
import { handMade } from "../sample/hand-made.ts";
import { changesStable } from "../system/changes-stable.ts";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { listen } from "../system/listen.ts";

const CLIENT = "acme";
const DEADLINE_MS = 120_000;
const ROWS = fileURLToPath(new URL("../outside/parquet-rows.py", import.meta.url));
const QUESTIONS = fileURLToPath(
  new URL("../../packages/connectors/parquet/three_questions.py", import.meta.url),
);
const LISTS = ["conversations", "messages", "end_users"] as const;
type List = (typeof LISTS)[number];
const READERS = ["duckdb", "pyarrow", "polars"] as const;
const NO_FILE = /magic bytes|must end with PAR1|too small|smaller than|at least 12 bytes/i;

const INGEST = { BATCH_MAX_AGE_MS: "300", WATERMARK_INTERVAL_MS: "500" };

let system: System;
let delivery: Delivery;
let key: string;
let folder: string;
let python: string;

const client = () => createClient({ baseUrl: system.apiUrl, apiKey: key });

const exported = (kind: RecordKind, id: string, data: Readonly<Record<string, unknown>> | string) =>
  handMade({ kind, client: CLIENT, id, time: new Date().toISOString(), data });

const oddRecords = () => {
  const created = '"date_created":"2026-10-05T00:00:00Z"';
  const labels =
    '"a":1,"date_created":"x","metavariables":{"y":1},"oauth_channel":null,"variables":{},"review":1,"recipient":"z"';
  const hidden = `{"text":"\\"},\\"date_created\\":{ [","next":{${labels}},"list":[{${labels}},"]}\\\\"]}`;
  const deep = `${'{"d":'.repeat(150)}12345678901234567890123${"}".repeat(150)}`;
  const big =
    '{"n":123456789012345678901234567890,"f":1.10,"e":1E5,"m":-9223372036854775809,"k":[1,null,true]}';
  return [
    exported(
      "conversation",
      "odd",
      `{"_id":"odd",${created},"csat":${hidden},"metavariables":${hidden},"variables":${big},"agent_handle_time":123456789012345678901234567890,"bot_handle_time":1.5e-7}`,
    ),
    exported("conversation", "deep", `{"_id":"deep",${created},"csat":${deep},"variables":${hidden}}`),
    exported(
      "message",
      "odd",
      `{"_id":"odd","conversation_id":"odd",${created},"message_data":${hidden},"review":5.0}`,
    ),
    exported("message", "deep", `{"_id":"deep","conversation_id":"odd",${created},"message_data":${deep}}`),
    exported(
      "end_user",
      "odd",
      `{"end_user_id":"odd","created_at":"2026-10-05T00:00:00Z","profile":{"email":"a@b.c","metadata":{"system_properties":{"x":"}"},"n":${big}},"system_properties":{"created_at":"\\\\"}}}`,
    ),
    exported("end_user", "bare", '{"end_user_id":"bare","created_at":"2026-10-05T00:00:00Z"}'),
  ];
};

const changesAreStable = (): Promise<void> => changesStable(system, client(), DEADLINE_MS);

beforeAll(async () => {
  const [started, programs] = await Promise.all([startSystem("test-parquet"), preparePythonTools("parquet")]);
  system = started;
  python = join(programs, "python");
  folder = join(system.logFolder, "files");
  mkdirSync(folder, { recursive: true });
  key = await system.key(CLIENT, ["export", "end_users"]);
  delivery = createDelivery(system);
  await Promise.all([
    system.service("ingest", INGEST),
    system.service("export-api"),
    system.service("jobs", { ...NO_SCHEDULES }),
  ]);
  const sample = {
    seed: seedOfRun("parquet"),
    conversations: bySize(150, 5_000),
    endUsers: 120,
    poisonShare: 0,
  };
  await delivery.send(createSample({ ...sample, clients: [CLIENT] }));
  await delivery.send(oddRecords());
  await changesAreStable();
});
afterAll(async () => {
  await system?.stop();
});

const run = async (script: string, args: readonly string[], url = system.apiUrl): Promise<string> => {
  const { stdout } = await promisify(execFile)(python, [script, ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, EXPORT_API_URL: url, EXPORT_API_KEY: key },
    maxBuffer: 1024 ** 3,
  });
  return stdout;
};

const ask = (path: string, accept: string, ownKey = key): Promise<Response> =>
  fetch(system.apiUrl + path, { headers: { authorization: `Bearer ${ownKey}`, accept } });

type Row = Readonly<Record<string, unknown>>;
type Found = {
  readonly rows: readonly Row[];
  readonly facts: Readonly<Record<string, string>>;
  readonly types: Readonly<Record<string, string>>;
  readonly error?: string;
};
type ByReader = Readonly<Record<(typeof READERS)[number], Found>>;

const readFiles = async (files: readonly Uint8Array[]): Promise<readonly ByReader[]> => {
  const names = files.map((file, index) => {
    const name = join(folder, `${index}.parquet`);
    writeFileSync(name, file);
    return name;
  });
  return JSON.parse(await run(ROWS, names)) as ByReader[];
};

const fileOf = async (path: string): Promise<Uint8Array> => {
  const answer = await ask(path, "application/vnd.apache.parquet");
  const file = new Uint8Array(await answer.arrayBuffer());
  expect(answer.status, new TextDecoder().decode(file.subarray(0, 500))).toBe(200);
  return file;
};

const typed = (name: string, value: Exact, given: unknown): unknown => {
  if (isNumber(value)) return Number(value.text);
  if (isList(value))
    return value.map((item) =>
      isObject(item)
        ? Object.fromEntries(item.members.map(([one, of]) => [one, typed(one, of, null)]))
        : item,
    );
  if (!isObject(value)) return value;
  if (name !== "profile") return printExact(value);
  const members = Object.keys(given as Row);
  return Object.fromEntries(members.map((one) => [one, typed(one, member(value, one) ?? null, null)]));
};

const expectSame = (texts: readonly string[], { rows, error }: Found, about: string): void => {
  expect(error, about).toBeUndefined();
  const expected = texts.map((text, index) => {
    const record = parseExact(text);
    if (!isObject(record)) throw new Error("a record is an object");
    const row = rows[index] ?? {};
    return Object.fromEntries(record.members.map(([name, value]) => [name, typed(name, value, row[name])]));
  });
  expect(rows, about).toEqual(expected);
};

const WHOLE = "created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z";
const UPDATED = "updated_since=1970-01-01T00:00:00Z&updated_to=2105-12-31T00:00:00Z";
const PATHS = {
  conversations: `/v2/export/conversations?${WHOLE}`,
  "conversations by update": `/v2/export/conversations?${UPDATED}`,
  messages: `/v2/export/messages?${WHOLE}`,
  "messages of a conversation": `/v2/export/messages?${WHOLE}&conversation_id=odd`,
  "end users": "/v2/end-users",
  nothing: "/v2/export/messages?created_since=1970-01-01T00:00:00Z",
} as const;

it("DuckDB, pyarrow and polars find every field of every list as JSON has it, in the same order", async () => {
  const texts = await Promise.all(Object.values(PATHS).map((path) => walk(system.apiUrl + path, key)));
  expect(texts.map(({ length }) => length > 0)).toEqual([true, true, true, true, true, false]);
  const found = await readFiles(await Promise.all(Object.values(PATHS).map(fileOf)));
  for (const [index, name] of Object.keys(PATHS).entries())
    for (const reader of READERS) {
      const one = found[index]?.[reader] as Found;
      expectSame(texts[index] ?? [], one, `${name} by ${reader}`);
      expect(one.facts).toMatchObject({ count: String(texts[index]?.length) });
      expect(Date.parse(one.facts["watermark"] ?? "")).toBeGreaterThan(0);
    }
});

it("columns have types: instants in UTC, lists, structs, and text where an object may be of any form", async () => {
  const [conversations, endUsers] = await readFiles(
    await Promise.all([PATHS.conversations, PATHS["end users"]].map(fileOf)),
  );
  expect(conversations?.duckdb.types).toMatchObject({
    _id: "VARCHAR",
    agent_id: "VARCHAR[]",
    agent_handle_time: "DOUBLE",
    csat: "VARCHAR",
    date_created: "TIMESTAMP WITH TIME ZONE",
    is_escalated: "BOOLEAN",
    used_articles: 'STRUCT(id VARCHAR, "name" VARCHAR, url VARCHAR, "source" VARCHAR)[]',
  });
  expect(conversations?.pyarrow.types).toMatchObject({
    date_updated: "timestamp[us, tz=UTC]",
    record_last_updated: "timestamp[us, tz=UTC]",
    variables: "string",
  });
  expect(conversations?.polars.types["date_created"]).toBe("Datetime(time_unit='us', time_zone='UTC')");
  expect(endUsers?.duckdb.types["profile"]).toContain("email VARCHAR");
});

const changesOf = async (list: List, cursor?: string): Promise<ByReader> => {
  const query = cursor === undefined ? "" : `?cursor=${encodeURIComponent(cursor)}`;
  const [found] = await readFiles([await fileOf(`/v2/export/changes/${list}${query}`)]);
  if (found === undefined) throw new Error("no file");
  return found;
};

it("changes come with their deletions, and the footer says where to go on", async () => {
  const live = (rows: readonly Row[]) =>
    rows.map(({ deleted, deleted_at, ...row }) => ({ deleted, deleted_at, row }));
  const first = await changesOf("conversations");
  const lines = (await (await ask("/v2/export/changes/conversations", "application/x-ndjson")).text())
    .trimEnd()
    .split("\n");
  const trailer = JSON.parse(lines.pop() ?? "") as { trailer: { next_cursor: string; count: number } };
  for (const reader of READERS) {
    const { rows, facts } = first[reader];
    expectSame(lines, { ...first[reader], rows: live(rows).map(({ row }) => row) }, `changes by ${reader}`);
    expect(rows.every(({ deleted, deleted_at }) => deleted === false && deleted_at === null)).toBe(true);
    expect(facts).toMatchObject({ count: String(trailer.trailer.count), end_of_stream: "true" });
  }

  const deletion = `INSERT INTO changes (client_id, kind, stored_at, id, date_created, deleted)
    VALUES ('${CLIENT}', 'conversation', now64(6), 'gone', 0, true)`;
  await system.sql(deletion);
  await delivery.send([
    exported("conversation", "new", { _id: "new", date_created: "2026-10-05T00:00:00Z" }),
  ]);
  await changesAreStable();
  const second = await changesOf("conversations", first.duckdb.facts["next_cursor"]);
  for (const reader of READERS) {
    const { rows } = second[reader];
    expect(rows).toContainEqual(expect.objectContaining({ _id: "new", deleted: false, deleted_at: null }));
    const gone = rows.find(({ _id }) => _id === "gone");
    expect(gone).toMatchObject({ deleted: true, date_created: null, agent_id: [] });
    expect(Date.parse(String(gone?.["deleted_at"]))).toBeGreaterThan(Date.now() - 600_000);
    expect(rows.length).toBeLessThan(20);
  }
});

it("an answer that breaks in the middle is an error to its reader, and no file to any library", async () => {
  const broken = await system.key("broken");
  const at = Date.parse("2026-10-05T00:00:00Z") * 1_000;
  // More than a step; the last row holds no record.
  const rows = `INSERT INTO messages (client_id, date_created, message_id, version, exported_at, uploaded_at, record)
    SELECT 'broken', fromUnixTimestamp64Micro(${at} + number, 'UTC'), toString(number), 1, 0, now64(6),
      if(number = 49999, 'no record', concat('{"_id":"', toString(number), '","date_created":"2026-10-05T00:00:00.000000+00:00","message_data":{"body":"', hex(sipHash128(number)), '"},"recipient":"bot"}'))
    FROM numbers(50000)`;
  await system.sql(rows);
  const from = (instant: string): Promise<Response> =>
    ask(`/v2/export/messages?created_since=${instant}`, "application/vnd.apache.parquet", broken);
  expect((await from("2026-10-05T00:00:00.049999Z")).status).toBe(500);
  const answer = await from("2026-10-05T00:00:00Z");
  expect(answer.status).toBe(200);
  const chunks: Uint8Array[] = [];
  const reading = (async () => {
    for await (const chunk of answer.body as AsyncIterable<Uint8Array>) chunks.push(chunk);
  })();
  await expect(reading).rejects.toThrow("terminated");
  const partial = Buffer.concat(chunks);
  // What the sender still held is lost, so how much arrives depends on the machine.
  expect(partial.length).toBeGreaterThan(100_000);
  expect(partial.subarray(0, 4).toString()).toBe("PAR1");
  const cuts = [partial, partial.subarray(0, partial.length >> 1), partial.subarray(0, 5)];
  for (const found of await readFiles(cuts))
    for (const reader of READERS) expect(found[reader].error, reader).toMatch(NO_FILE);
});

it("three questions are answered from one file", async () => {
  const texts = await walk(
    `${system.apiUrl}/v2/export/conversations?created_since=2026-10-04T00:00:00Z&created_to=2026-10-11T00:00:00Z`,
    key,
  );
  type Conversation = {
    readonly date_created: string;
    readonly is_test_user: boolean | null;
    readonly handoffs: readonly { readonly reason_code: string | null }[];
    readonly csat: { readonly score?: unknown } | null;
  };
  const all = texts
    .map((text) => JSON.parse(text) as Conversation)
    .filter(({ is_test_user: test }) => test !== true);
  const count = (values: readonly string[]): string[] =>
    [...Map.groupBy(values, (value) => value)].map(([value, { length }]) => `${value} ${length}`).toSorted();
  const out = await run(QUESTIONS, ["2026-10-04", "2026-10-11"]);
  const [days = "", reasons = "", scores = ""] = out
    .split(/^(?:Conversations|Handoffs|Satisfaction) by .*\n/m)
    .slice(1);
  const firstTwo = (part: string): string[] =>
    part
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/).slice(0, 2).join(" "))
      .toSorted();
  expect(firstTwo(days)).toEqual(count(all.map(({ date_created: date }) => date.slice(0, 10))));
  expect(firstTwo(reasons)).toEqual(
    count(all.flatMap(({ handoffs }) => handoffs.map(({ reason_code: code }) => code ?? "not recorded"))),
  );
  const scored = all.filter(({ csat }) => typeof csat?.score === "number");
  const answers = firstTwo(scores).map((line) => Number(line.slice(line.lastIndexOf(" "))));
  expect(answers.reduce((sum, one) => sum + one, 0)).toBe(scored.length);

  const file = join(folder, "conversations.parquet");
  const whole = readFileSync(file);
  for (const headers of [{}, { "content-length": String(whole.length) }]) {
    const breaking = createServer((_, response) => {
      response.writeHead(200, headers);
      response.write(whole.subarray(0, 100), () => response.destroy());
    });
    const { port, close } = await listen(breaking);
    await expect(run(QUESTIONS, ["2026-10-04", "2026-10-11"], `http://127.0.0.1:${port}`)).rejects.toThrow(
      /IncompleteRead|the answer is not whole/,
    );
    await close();
    expect(readFileSync(file).equals(whole)).toBe(true);
  }

  expect(await run(QUESTIONS, ["1990-01-01", "1990-01-02"])).toMatch(/^No conversation began/);
  await expect(run(QUESTIONS, [])).rejects.toThrow("usage: python three_questions.py");
});

it("the script of the three questions takes no arguments of a notebook's kernel", async () => {
  const cells = join(folder, "cells.py");
  writeFileSync(cells, readFileSync(QUESTIONS));
  expect(await run(cells, ["-f", "kernel.json"])).toBe(await run(QUESTIONS, ["2026-10-04", "2026-10-11"]));
});
