import { Readable } from "node:stream";
import { formatTimestampZ, type LinkBounds, parseTimestamp } from "@conversation-export/domain";
import { createKey, ServiceError } from "@conversation-export/runtime";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  AUTHORIZED,
  CLIENT,
  createListReader,
  createTestApp,
  KEY,
  pageOf,
  type StoredRecord,
  WATERMARK,
} from "../http/app.fixture.ts";
import type { ExportAppDeps } from "../export-app.ts";

type Stored = StoredRecord & { readonly _id: string; readonly sender: string; readonly chatter_id: string };
type Body = { data: Partial<Stored>[]; message: string; next_page_uri: string | null };

const START = parseTimestamp("2024-03-01T00:00:00Z") ?? 0;
const SINCE = "created_since=2024-03-01T00%3A00%3A00.000000";
const HOST = "export.example";

const stored = (index: number, created: number, updated = created): Stored => {
  const _id = `r${((index * 7919) % 100_003).toString(36)}`;
  const record = { clientId: "acme", id: _id, conversationId: "c", _id, sender: "bot", chatter_id: "h" };
  return { ...record, created: START + created, updated: START + updated };
};
const many = (count: number): Stored[] => Array.from({ length: count }, (_, index) => stored(index, index));

const setUp = (records: readonly Stored[], overrides: Partial<ExportAppDeps> = {}) => {
  const other = createKey().key;
  const clients = { [KEY]: CLIENT, [other]: { ...CLIENT, clientId: "globex" } };
  const list = createListReader({ records, clients });
  const { app } = createTestApp(list.reader, overrides);
  const get = (url: string, headers: Record<string, string> = AUTHORIZED) =>
    app.inject({ url, headers: { host: HOST, ...headers } });
  return { ...list, app, get, other: { authorization: `Bearer ${other}` } };
};

describe("a page", () => {
  it("has the legacy envelope and the fields of its version", async () => {
    const { get } = setUp([stored(0, 0), stored(1, 1)]);
    const { body, headers, statusCode } = await get(`/data_api/v1/messages?${SINCE}`);
    expect(statusCode).toBe(200);
    expect(body).toBe(
      '{"data":[{"_id":"r0","sender":"bot"},{"_id":"r63z","sender":"bot"}],"message":"OK","next_page_uri":null}',
    );
    expect(headers["content-type"]).toBe("application/json");
    const later = await get(`/data_api/v1.1/messages?${SINCE}`);
    expect(later.json<Body>().data[0]).toEqual({ _id: "r0", sender: "bot", chatter_id: "h" });
    const conversations = await get(`/data_api/v1/conversations?${SINCE}`);
    expect(conversations.json<Body>().data[0]).toEqual({ _id: "r0", chatter_id: "h" });
  });

  it("has all three keys when it is empty", async () => {
    const { get, queries } = setUp([]);
    const empty = '{"data":[],"message":"OK","next_page_uri":null}';
    expect((await get(`/data_api/v1.2/conversations?${SINCE}`)).body).toBe(empty);
    expect((await get(`/data_api/v1.2/messages?${SINCE}&created_to=2024-01-01T00:00:00`)).body).toBe(empty);
    expect(queries).toHaveLength(1);
  });

  it("links relatively, under the prefix that was called, with the client's own timestamps", async () => {
    const { get } = setUp(many(3));
    for (const prefix of ["", "/api"]) {
      const path = `${prefix}/data_api/v1.2/messages`;
      const { headers, ...response } = await get(`${path}?${SINCE}&page_size=2`);
      const { next_page_uri: link, data } = response.json<Body>();
      expect(data).toHaveLength(2);
      expect(link).toMatch(
        new RegExp(
          `^${path}\\?${SINCE}&created_to=2024-03-08T00%3A00%3A00\\.000000&page_size=2&cursor=[\\w-]+$`,
        ),
      );
      expect(headers["link"]).toBe(`<http://${HOST}/api/v2/export/messages>; rel="successor-version"`);
      const rest = await get(link ?? "");
      expect(rest.json<Body>()).toMatchObject({ next_page_uri: null, data: [{}] });
    }
    const zulu = await get("/data_api/v1/messages?created_since=2024-03-01T00:00:00Z&page_size=2");
    expect(zulu.json<Body>().next_page_uri).toContain(
      "created_since=2024-03-01T00%3A00%3A00Z&created_to=2024-03-08T00%3A00%3A00.000000Z&",
    );
  });

  it("means the last 7 days when a request for conversations has no filter; the link keeps them", async () => {
    let now = START / 1000 + 1_000;
    const { get, queries } = setUp(many(3), { now: () => now });
    const first = await get("/data_api/v1/conversations?page_size=2");
    now += 5_000;
    const { next_page_uri: link } = first.json<Body>();
    expect(link).toContain(
      "created_since=2024-02-23T00%3A00%3A01.000000&created_to=2024-03-01T00%3A00%3A01.000000&",
    );
    expect((await get(link ?? "")).json<Body>().data).toHaveLength(1);
    expect(queries[1]).toMatchObject({ since: queries[0]?.since, to: START + 1_000_000 });
  });
});

describe("headers", () => {
  const announced = {
    deprecation: new Date("2026-12-31T00:00:00Z"),
    sunset: new Date("2027-06-30T00:00:00Z"),
  };

  it("announce the end of the versions on every answer", async () => {
    const { app, get } = setUp(many(3), { legacy: announced });
    const answers = [
      await get(`/data_api/v1/messages?${SINCE}`),
      await get(`/api/data_api/v1.2/conversations?${SINCE}&page_size=1`),
      await get("/data_api/v1/messages"),
      await get(`/data_api/v1/messages?${SINCE}`, {}),
      await app.inject({ method: "HEAD", url: `/data_api/v1/messages?${SINCE}`, headers: AUTHORIZED }),
    ];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 400, 401, 200]);
    for (const { headers } of answers) {
      expect(headers).toMatchObject({ deprecation: "@1798675200", sunset: "Wed, 30 Jun 2027 00:00:00 GMT" });
      expect(headers["link"]).toMatch(
        /<http:\/\/[^>]+\/api\/v2\/export\/(messages|conversations)>; rel="successor-version"$/,
      );
    }
    const v2 = await get(`/api/v2/export/messages?created_since=2024-03-01T00:00:00Z`);
    expect(v2.headers).not.toHaveProperty("deprecation");
  });

  it("tell up to where the list is complete, which was asked before the records", async () => {
    const asked: string[] = [];
    const { get, queries } = setUp(many(3), {
      watermark: (list) => {
        asked.push(`${list} after ${queries.length} queries`);
        return Promise.resolve(WATERMARK);
      },
    });
    for (const list of ["conversations", "messages"]) {
      const { headers } = await get(`/data_api/v1.1/${list}?${SINCE}&page_size=1`);
      expect(headers["x-export-watermark"]).toBe(WATERMARK);
    }
    expect(asked).toEqual(["conversations after 0 queries", "messages after 1 queries"]);
  });

  it("leave out what is not configured", async () => {
    const { headers } = await setUp([]).get(`/data_api/v1/messages?${SINCE}`);
    expect(headers).not.toHaveProperty("deprecation");
    expect(headers).not.toHaveProperty("sunset");
    expect(headers["link"]).toBe(`<http://${HOST}/api/v2/export/messages>; rel="successor-version"`);
  });
});

it("refuses a cursor of another client, version, list or window", async () => {
  const { get, other } = setUp(many(300));
  const path = "/data_api/v1.2/messages";
  const query = "created_since=2024-03-01T00:00:00Z&created_to=2024-03-08T00:00:00Z&page_size=100";
  const { next_page_uri: link } = (await get(`${path}?${query}`)).json<Body>();
  const cursor = `&cursor=${new URLSearchParams(link?.split("?")[1]).get("cursor")}`;
  expect((await get(`${path}?${query}${cursor}`)).statusCode).toBe(200);
  expect((await get(`/api${path}?${query}${cursor}`)).statusCode).toBe(200);
  const refused = [
    await get(`${path}?${query}${cursor}`, other),
    await get(`/data_api/v1.1/messages?${query}${cursor}`),
    await get(`/data_api/v1.2/conversations?${query}${cursor}`),
    await get(`/api/v2/export/messages?${query}${cursor}`),
    await get(`${path}?${query.replace("03-08", "03-09")}${cursor}`),
  ];
  for (const { statusCode, body } of refused) {
    expect(statusCode).toBe(400);
    expect(body).toContain("cursor: does not belong to this request");
  }
});

it("answers 503 when the warehouse fails before the first record, and breaks off afterwards", async () => {
  const failing = (records: Readable) => {
    const { reader } = createListReader({});
    return createTestApp({ ...reader, messagesByCreation: () => Promise.resolve(pageOf(records)) }).app;
  };
  const failure = new ServiceError("warehouse_unavailable", "away", { retryable: true });
  const chunks = async function* (...parts: string[]) {
    for (const part of parts) yield Buffer.from(part);
    await Promise.resolve();
    throw failure;
  };
  const url = `/data_api/v1/messages?${SINCE}`;
  const early = failing(Readable.from(chunks('{"_id":"a"')));
  expect(await early.inject({ url, headers: AUTHORIZED })).toMatchObject({ statusCode: 503 });
  const late = failing(Readable.from(chunks('{"_id":"a"}\n', '{"_id":"b"}\n')));
  await expect(late.inject({ url, headers: AUTHORIZED })).rejects.toThrow(
    "response destroyed before completion",
  );
});

describe("walks", () => {
  const KINDS = {
    "follows the link": (_first: string, link: string) => link,
    "prefixes its host and /api to the link": (_first: string, link: string) => `/api${link}`,
    "takes the lower bound alone": (first: string, link: string) => {
      const next = new URL(first, "http://own.example");
      const given = new URL(link, "http://own.example").searchParams;
      for (const name of ["created_since", "updated_since"]) {
        const value = given.get(name);
        if (value !== null) next.searchParams.set(name, value);
      }
      return next.pathname + next.search;
    },
  };
  // Few distinct dates make many and large ties.
  const list = fc
    .tuple(
      fc.integer({ min: 1, max: 40 }),
      fc.array(fc.tuple(fc.nat({ max: 1_000_000 }), fc.nat({ max: 1_000_000 })), { maxLength: 300 }),
    )
    .map(([spread, dates]) => dates.map(([one, two], index) => stored(index, one % spread, two % spread)));
  const kinds = fc.constantFrom<[LinkBounds, keyof typeof KINDS]>(
    ["same", "follows the link"],
    ["same", "prefixes its host and /api to the link"],
    ["advancing", "follows the link"],
    ["advancing", "prefixes its host and /api to the link"],
    ["advancing", "takes the lower bound alone"],
  );
  const route = fc.constantFrom(
    { path: "conversations", filter: "created" as const },
    { path: "conversations", filter: "updated" as const },
    { path: "messages", filter: "created" as const },
  );

  it("give everything once and in order to every kind of client", async () => {
    await fc.assert(
      fc.asyncProperty(
        list,
        kinds,
        route,
        fc.constantFrom("", "/api"),
        fc.integer({ min: 1, max: 100 }),
        fc.constantFrom("", "Z", "+00:00"),
        async (records, [linkBounds, kind], { path, filter }, prefix, size, suffix) => {
          const { get } = setUp(records, { linkBounds, keyCacheMs: 60_000 });
          const since = encodeURIComponent(formatTimestampZ(START).slice(0, -1) + suffix);
          const first = `${prefix}/data_api/v1.2/${path}?${filter}_since=${since}&page_size=${size}`;
          const read: (string | undefined)[] = [];
          let target: string | null = first;
          for (let page = 0; target !== null; page += 1) {
            if (page > records.length + 2) throw new Error("the walk does not end");
            const response = await get(target);
            expect(response.statusCode, response.body).toBe(200);
            const { data, next_page_uri: link } = response.json<Body>();
            read.push(...data.map(({ _id }) => _id));
            target = link === null ? null : KINDS[kind](first, link);
          }
          const expected = records
            .toSorted((a, b) => a[filter] - b[filter] || (a.id < b.id ? -1 : 1))
            .map(({ _id }) => _id);
          expect(read).toEqual(expected);
        },
      ),
      { numRuns: 60 },
    );
  });
});
