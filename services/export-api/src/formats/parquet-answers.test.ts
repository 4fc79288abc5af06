import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import type { Reader } from "@conversation-export/warehouse";
import { AUTHORIZED, CLIENT, createListReader, createTestApp, KEY, WATERMARK } from "../http/app.fixture.ts";
import { contentOf, fileOf } from "./file.fixture.ts";

const PARQUET = { ...AUTHORIZED, accept: "application/vnd.apache.parquet", host: "h" };
const SINCE = 1_709_251_200_000_000;
const DAY = 86_400_000_000;
const NOW = Date.parse("2026-10-05T00:00:00Z");
const EXPORT = "/api/v2/export";

const setUp = (own: Partial<Reader> = {}) => {
  const { reader, parquetQueries } = createListReader({
    clients: { [KEY]: { ...CLIENT, scopes: ["export", "end_users"] } },
  });
  const { app, logLines } = createTestApp(
    { ...reader, ...own },
    { now: () => NOW, stable: () => Promise.resolve({ until: NOW * 1_000, watermark: WATERMARK }) },
  );
  const get = (url: string, headers: Readonly<Record<string, string>> = {}) =>
    app.inject({ url, headers: { ...PARQUET, ...headers } });
  return { get, parquetQueries, logLines };
};

describe("a list as Parquet", () => {
  it.each([
    ["conversations?created_since=2024-03-01T00:00:00Z", { list: "conversations", filter: "created" }],
    ["conversations?updated_since=2024-03-01T00:00:00Z", { list: "conversations", filter: "updated" }],
    ["messages?created_since=2024-03-01T00:00:00Z", { list: "messages", filter: "created" }],
    [
      "messages?created_since=2024-03-01T00:00:00Z&conversation_id=c",
      { list: "messages", filter: "created", conversationId: "c" },
    ],
  ])("%s is asked for by its window", async (query, asked) => {
    const { get, parquetQueries } = setUp();
    const answer = await get(`${EXPORT}/${query}`);
    expect(answer.statusCode).toBe(200);
    expect(answer.headers).toMatchObject({
      "content-type": "application/vnd.apache.parquet",
      "x-export-watermark": WATERMARK,
    });
    expect(contentOf(answer.rawPayload)).toMatchObject({
      rows: 3,
      facts: { count: "3", watermark: WATERMARK },
    });
    const own = { clientId: "acme", since: SINCE, to: SINCE + 7 * DAY, pageSize: 10_000, wholeTies: false };
    expect(parquetQueries).toEqual([{ ...own, ...asked }]);
  });

  it("is asked for although its window is empty", async () => {
    const { get, parquetQueries } = setUp();
    const bounds = "created_since=2024-03-01T00:00:00Z&created_to=2024-02-01T00:00:00Z";
    expect((await get(`${EXPORT}/messages?${bounds}`)).statusCode).toBe(200);
    expect(parquetQueries).toHaveLength(1);
  });

  it("of end users begins at the cursor, with one external id if that is given", async () => {
    const { get, parquetQueries } = setUp();
    const answer = await get("/api/v2/end-users?cursor=b&external_id=x&limit=1");
    expect(contentOf(answer.rawPayload).facts).toEqual({ count: "3", watermark: WATERMARK });
    expect(parquetQueries).toEqual([{ list: "endUsers", clientId: "acme", from: "b", externalId: "x" }]);
  });

  it("of changes says in its footer where the reader goes on", async () => {
    const { get, parquetQueries } = setUp();
    const first = contentOf((await get(`${EXPORT}/changes/messages`)).rawPayload);
    expect(first.facts).toMatchObject({ count: "3", watermark: WATERMARK, end_of_stream: "true" });
    expect(first.facts["next_stored_since"]).toBe("2026-10-05T00:00:00.000000Z");
    const cursor = encodeURIComponent(first.facts["next_cursor"] ?? "");
    const second = await get(`${EXPORT}/changes/messages?cursor=${cursor}`);
    expect(contentOf(second.rawPayload).facts["next_cursor"]).toBe(first.facts["next_cursor"]);
    const stableUpTo = NOW * 1_000;
    expect(parquetQueries).toMatchObject([
      { list: "changes", clientId: "acme", kind: "message", after: { date: 0, id: "" }, stableUpTo },
      { kind: "message", after: { date: stableUpTo, id: "" }, stableUpTo },
    ]);
  });

  it("is not compressed once more", async () => {
    const { get } = setUp();
    const url = `${EXPORT}/messages?created_since=2024-03-01T00:00:00Z`;
    const answer = await get(url, { "accept-encoding": "zstd, gzip" });
    expect(answer.headers["content-encoding"]).toBeUndefined();
    expect(contentOf(answer.rawPayload).rows).toBe(3);
  });

  it("takes no cursor of a page", async () => {
    const { get } = setUp();
    const answer = await get(`${EXPORT}/messages?created_since=2024-03-01T00:00:00Z&cursor=x`);
    expect(answer.statusCode).toBe(400);
    expect(answer.body).toContain("cursor: a Parquet file is the whole window");
  });

  it.each([
    ["cannot be opened", () => Promise.reject(new Error("a bug"))],
    ["ends early", () => Promise.resolve({ bytes: Readable.from([fileOf([]).subarray(0, -1)]), next: null })],
  ])("breaks off when a later part %s", async (_, later) => {
    const { reader } = createListReader({});
    const messages = () => () =>
      Promise.resolve({ bytes: Readable.from([fileOf([{ rows: 1, columns: ["a"] }])]), next: later });
    const { get, logLines } = setUp({ parquet: { ...reader.parquet, messages } });
    await expect(get(`${EXPORT}/messages?created_since=2024-03-01T00:00:00Z`)).rejects.toThrow(
      "response destroyed before completion",
    );
    expect(logLines).toContainEqual(
      expect.objectContaining({ msg: "page broken off", reason: "warehouse_failed" }),
    );
  });
});
