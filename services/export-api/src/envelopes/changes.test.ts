import { createKey } from "@conversation-export/runtime";
import type { Reader } from "@conversation-export/warehouse";
import { describe, expect, it } from "vitest";
import {
  CLIENT,
  createListReader,
  createTestApp,
  KEY,
  type StoredChange,
  WATERMARK,
} from "../http/app.fixture.ts";

const CONVERSATIONS = "/api/v2/export/changes/conversations";
const DAY_MS = 86_400_000;
const NOW = Date.parse("2026-10-05T00:00:00Z");
const BEGIN = (NOW - 100_000) * 1_000;

const GLOBEX = createKey().key;
const NARROW = createKey().key;
const clients = {
  [KEY]: { ...CLIENT, scopes: ["export", "end_users"] },
  [GLOBEX]: { ...CLIENT, clientId: "globex", scopes: ["export"] },
  [NARROW]: CLIENT,
};

const change = (second: number, id: string, rest: Partial<StoredChange> = {}): StoredChange => ({
  clientId: "acme",
  kind: "conversation",
  storedAt: BEGIN + second * 1_000_000,
  id,
  ...rest,
});
const CHANGES = [
  change(1, "a"),
  change(1, "b"),
  change(2, "a"),
  change(3, "c", { deleted: true }),
  change(3, "m", { kind: "message" }),
  change(4, "u", { kind: "end_user" }),
  change(5, "g", { clientId: "globex" }),
  change(6, "d"),
];

type Body = {
  data: { _id: string; deleted?: true }[];
  meta: { next_cursor: string; next_stored_since: string; end_of_stream: boolean };
};
type Trailer = {
  trailer: { count: number; watermark: string | null; next_cursor: string; end_of_stream: boolean };
};

const setUp = (wrap: (reader: Reader) => Partial<Reader> = () => ({})) => {
  const world = {
    now: NOW,
    until: (NOW * 1_000) as number | undefined,
    watermark: WATERMARK as string | undefined,
  };
  const changes = [...CHANGES];
  const { reader, changeQueries } = createListReader({ changes, clients });
  const { app, logLines } = createTestApp(
    { ...reader, ...wrap(reader) },
    {
      now: () => world.now,
      stable: () => Promise.resolve({ until: world.until, watermark: world.watermark }),
      previousCursorSecret: "the former secret, 32 characters long",
    },
  );
  const ask = (query: string, { path = CONVERSATIONS, key = KEY, accept = "*/*" } = {}) =>
    app.inject({ url: path + query, headers: { host: "h", authorization: `Bearer ${key}`, accept } });
  const get = async (query: string, path?: string) => {
    const answer = await ask(query, path === undefined ? {} : { path });
    expect(answer.statusCode, answer.body).toBe(200);
    const { data, meta } = answer.json<Body>();
    return {
      answer,
      ids: data.map(({ _id }) => _id),
      data,
      cursor: meta.next_cursor,
      since: meta.next_stored_since,
      end: meta.end_of_stream,
    };
  };
  const lines = async (query: string) => {
    const answer = await ask(query, { accept: "application/x-ndjson" });
    expect(answer.statusCode, answer.body).toBe(200);
    expect(answer.headers["content-type"]).toBe("application/x-ndjson");
    const all = answer.body.trimEnd().split("\n");
    return {
      answer,
      ids: all.slice(0, -1).map((line) => (JSON.parse(line) as { _id: string })._id),
      ...(JSON.parse(all.at(-1) ?? "") as Trailer),
    };
  };
  const refusal = async (query: string, rest: Parameters<typeof ask>[1] = {}) => {
    const answer = await ask(query, rest);
    const [error] = answer.json<{ errors: [{ type: string; details: string | null }] }>().errors;
    return { status: answer.statusCode, headers: answer.headers, ...error };
  };
  return { world, changes, changeQueries, logLines, get, lines, refusal };
};

describe("pages of changes", () => {
  it("go on from the cursor of the page before, and behind the end from what was stored since", async () => {
    const { get, world, changes } = setUp();
    const seen: (readonly [string[], boolean])[] = [];
    let query = "?page_size=2";
    for (let end = false; !end; ) {
      const page = await get(query);
      end = page.end;
      seen.push([page.ids, page.end]);
      query = `?page_size=2&cursor=${page.cursor}`;
    }
    expect(seen).toEqual([
      [["a", "b"], false],
      [["a", "c"], false],
      [["d"], true],
    ]);
    const again = await get(query);
    expect([again.ids, again.end]).toEqual([[], true]);
    world.until = NOW * 1_000 + 5_000_000;
    changes.push(change(102, "e"), change(106, "f"));
    expect((await get(`?cursor=${again.cursor}`)).ids).toEqual(["e"]);
    // A reader that lost the answer asks again with the same cursor.
    expect((await get(query)).ids).toEqual(["e"]);
  });

  it("name the date from which a reader without cursor goes on, what was stored at it included", async () => {
    const { get, world, changes } = setUp();
    const first = await get("?page_size=1");
    expect(first.since).toBe("2026-10-04T23:58:21.000000Z");
    const second = await get(`?stored_since=${first.since}`);
    expect([second.ids, second.end]).toEqual([["a", "b", "a", "c", "d"], true]);
    expect(second.since).toBe("2026-10-05T00:00:00.000000Z");
    world.until = NOW * 1_000 + 5_000_000;
    changes.push(change(100, "e"));
    expect((await get(`?stored_since=${second.since}`)).ids).toEqual(["e"]);
  });

  it("hold what the client may read of one list, with the watermark of what is stable", async () => {
    const { get, world } = setUp();
    const { answer, data } = await get("");
    expect(data.find(({ _id }) => _id === "c")).toMatchObject({ deleted: true });
    expect(answer.headers["x-export-watermark"]).toBe(WATERMARK);
    expect((await get("", "/api/v2/export/changes/messages")).ids).toEqual(["m"]);
    expect((await get("", "/api/v2/export/changes/end_users")).ids).toEqual(["u"]);
    world.watermark = undefined;
    expect((await get("")).answer.headers["x-export-watermark"]).toBeUndefined();
  });

  it("begin at stored_since, or with everything, and hold a thousand records by default", async () => {
    const { get, changeQueries } = setUp();
    expect((await get("?stored_since=2026-10-04T23:58:23Z")).ids).toEqual(["c", "d"]);
    await get("?cursor=");
    expect(changeQueries.at(-1)).toMatchObject({ after: { date: 0, id: "" }, pageSize: 1_000 });
    const { cursor, end } = await get("?stored_since=9999-12-31T00:00:00Z");
    expect(end).toBe(true);
    expect((await get(`?cursor=${cursor}`)).end).toBe(true);
  });

  it("may be empty before the end", async () => {
    const { get } = setUp(({ changes }) => ({
      changes: async (query) => ({
        ...(await changes({ ...query, stableUpTo: 0 })),
        end: () => ({ rows: 0, next: query.after, isLast: false }),
      }),
    }));
    const { ids, cursor, end } = await get("");
    expect([ids, end]).toEqual([[], false]);
    expect(cursor).toMatch(/^[\w-]+$/);
  });

  it("are refused while no instant is stable, with leave to try again", async () => {
    const { refusal, world, logLines } = setUp();
    world.until = undefined;
    const { status, headers } = await refusal("");
    expect(status).toBe(503);
    expect(headers["retry-after"]).toBe("5");
    expect(JSON.stringify(logLines)).toContain("changes_not_stable");
  });
});

describe("a cursor of changes", () => {
  it("belongs to one client and one list", async () => {
    const { get, refusal } = setUp();
    const { cursor } = await get("");
    const refused = { status: 400, details: "cursor: does not belong to this request" };
    expect(await refusal(`?cursor=${cursor}`, { key: GLOBEX })).toMatchObject(refused);
    const path = "/api/v2/export/changes/messages";
    expect(await refusal(`?cursor=${cursor}`, { path })).toMatchObject(refused);
    for (const wrong of [cursor.slice(1), `${cursor}A`, "x"])
      expect(await refusal(`?cursor=${wrong}`)).toMatchObject(refused);
  });

  it("fits no page of a window", async () => {
    const { get, refusal } = setUp();
    const { cursor } = await get("");
    const query = `?created_since=2026-10-01T00:00:00Z&cursor=${cursor}`;
    expect(await refusal(query, { path: "/api/v2/export/conversations" })).toMatchObject({
      status: 400,
      details: "cursor: does not belong to this request",
    });
  });

  it("excludes stored_since, and every problem is named", async () => {
    const { get, refusal } = setUp();
    const { cursor } = await get("");
    const both = await refusal(`?cursor=${cursor}&stored_since=2026-10-01T00:00:00Z`);
    expect(both).toMatchObject({ status: 400, type: "bad_request" });
    expect(both.details).toContain("cursor, stored_since");
    const { details } = await refusal("?page_size=0&stored_since=soon&updated_since=2026-10-01");
    for (const name of ["page_size: must be", "stored_since: ", "updated_since: unknown"])
      expect(details).toContain(name);
    for (const size of ["1", "10000"]) expect((await get(`?page_size=${size}`)).cursor).not.toBe("");
    expect(await refusal("?page_size=10001")).toMatchObject({ status: 400 });
  });

  it("expires when its reader has paused for longer than deletions are kept", async () => {
    const { get, refusal, world } = setUp();
    const { cursor } = await get("");
    const later = (days: number): void => {
      world.now = NOW + days * DAY_MS;
      world.until = world.now * 1_000;
    };
    later(29.9);
    const fresh = (await get(`?cursor=${cursor}`)).cursor;
    later(30.1);
    const expired = await refusal(`?cursor=${cursor}`);
    expect(expired).toMatchObject({ status: 410, type: "resource_not_found" });
    expect(expired.details).toContain("30 days");
    expect((await get(`?cursor=${fresh}`)).end).toBe(true);
  });

  it("does not expire on the way through what was stored long ago", async () => {
    const { get, changes } = setUp();
    changes.push(change(-300 * 86_400, "old"), change(-299 * 86_400, "old2"));
    const first = await get("?page_size=1");
    expect(first.ids).toEqual(["old"]);
    expect((await get(`?page_size=1&cursor=${first.cursor}`)).ids).toEqual(["old2"]);
  });

  it("expires on that way when its reader takes longer than deletions are kept", async () => {
    const { get, refusal, changes, world } = setUp();
    for (const day of [300, 299, 298]) changes.push(change(-day * 86_400, `old${day}`));
    const first = await get("?page_size=1");
    world.now = NOW + 20 * DAY_MS;
    const second = await get(`?page_size=1&cursor=${first.cursor}`);
    expect(second.ids).toEqual(["old299"]);
    // What it read first may have been deleted and forgotten since.
    world.now = NOW + 31 * DAY_MS;
    expect(await refusal(`?page_size=1&cursor=${second.cursor}`)).toMatchObject({ status: 410 });
  });
});

it("needs the scope of its list", async () => {
  const { refusal } = setUp();
  const path = "/api/v2/export/changes/end_users";
  expect(await refusal("", { path, key: NARROW })).toMatchObject({ status: 403 });
});

describe("changes as lines", () => {
  it("are all changes up to the end, and a trailer with the cursor behind them", async () => {
    const { get, lines, changeQueries } = setUp();
    const { ids, trailer, answer } = await lines("");
    expect(ids).toEqual(["a", "b", "a", "c", "d"]);
    expect(trailer).toEqual({
      count: 5,
      watermark: WATERMARK,
      next_cursor: expect.stringMatching(/^[\w-]+$/) as string,
      next_stored_since: "2026-10-05T00:00:00.000000Z",
      end_of_stream: true,
    });
    expect(answer.headers["x-export-watermark"]).toBe(WATERMARK);
    expect(new Set(changeQueries.map(({ stableUpTo }) => stableUpTo)).size).toBe(1);
    expect((await get(`?cursor=${trailer.next_cursor}`)).ids).toEqual([]);
    const half = await get("?page_size=2");
    expect((await lines(`?cursor=${half.cursor}`)).ids).toEqual(["a", "c", "d"]);
  });

  it("are a trailer alone when nothing has changed, without a watermark while none is known", async () => {
    const { get, lines, world } = setUp();
    const { cursor } = await get("?stored_since=2026-10-05T00:00:00Z");
    world.watermark = undefined;
    const { ids, trailer } = await lines(`?cursor=${cursor}`);
    expect(ids).toEqual([]);
    expect(trailer).toMatchObject({ count: 0, watermark: null, end_of_stream: true });
    expect((await get(`?cursor=${trailer.next_cursor}`)).end).toBe(true);
  });
});
