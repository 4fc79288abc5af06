import { request as httpRequest } from "node:http";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, call, ingestAll, read } from "../conformance/call.ts";
import { LEGACY_PAIRS, LEGACY_PATHS, WHOLE } from "../conformance/operations.ts";
import { createDelivery } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { joinSystem } from "../system/join-system.ts";
import type { RunningSystem } from "../system/system.ts";
import type { BusEvent } from "../sample/index.ts";

const HOUR = 3_600_000;
/** One record an hour: more than two weeks, and more than three of the smallest pages. */
const RECORDS = 340;
const WEEK = 168;
const START = Date.UTC(2026, 9, 1);
const UPDATES = Date.UTC(2026, 10, 1);
/** Coprime with RECORDS. */
const STEP = 7;
/** One more than the largest page holds. */
const MANY = 10_001;
const CONVERSATIONS = 5;
const END_USERS = 1_050;

const at = (from: number, hours: number): string => new Date(from + hours * HOUR).toISOString();
const created = (index: number): string => at(START, index);
const updated = (hour: number): string => at(UPDATES, hour);
const idOf = (index: number): string => `r-${String(index).padStart(5, "0")}`;
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);
/** The record updated in hour h is number h / STEP modulo RECORDS. */
const updatedIn = (from: number, to: number): string[] => {
  const byHour = new Map(range(0, RECORDS).map((index) => [(index * STEP) % RECORDS, idOf(index)]));
  return range(from, to).map((hour) => byHour.get(hour) ?? "");
};

const events = function* (): Generator<BusEvent> {
  const time = "2026-11-20T00:00:00Z";
  for (const index of range(0, RECORDS)) {
    const [id, common] = [idOf(index), { client: "acme", time }];
    const date_created = created(index);
    const date_updated = updated((index * STEP) % RECORDS);
    yield handMade({ ...common, id, kind: "conversation", data: { _id: id, date_created, date_updated } });
    const conversation_id = `c-${index % CONVERSATIONS}`;
    yield handMade({ ...common, id, kind: "message", data: { _id: id, conversation_id, date_created } });
  }
  for (const index of range(0, END_USERS)) {
    const end_user_id = idOf(index);
    const profile = { system_properties: { crm_id: `crm-${index % 350}` } };
    const data = { end_user_id, created_at: created(0), profile };
    yield handMade({ client: "acme", time, id: end_user_id, kind: "end_user", data });
  }
  for (const index of range(0, MANY)) {
    const id = idOf(index);
    const date_created = new Date(START + index).toISOString();
    const common = { client: "many", time, id };
    yield handMade({ ...common, kind: "conversation", data: { _id: id, date_created } });
    yield handMade({ ...common, kind: "message", data: { _id: id, conversation_id: "c", date_created } });
  }
};

let system: RunningSystem;
let host = "";
const keys = new Map<string, string>();

beforeAll(async () => {
  system = await joinSystem();
  host = new URL(system.apiUrl).origin;
  for (const client of ["acme", "many"]) keys.set(client, await system.key(client, ["export", "end_users"]));
  const sending = createDelivery(system).send(events());
  await sending;
  await ingestAll(system);
});
afterAll(() => system?.stop());

const LISTS = ["conversations", "messages"] as const;
type Query = Readonly<Record<string, string | number | readonly string[]>>;

const urlOf = (path: string, query: Query): string => {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? (value as string[]) : [String(value)]) search.append(name, one);
  }
  return `${host}${path}?${search.toString()}`;
};
const exportUrl = (list: string, query: Query): string => urlOf(`/api/v2/export/${list}`, query);
const keyOf = (client: string): string => keys.get(client) ?? "";
const list = (name: string, query: Query, client = "acme"): Promise<Answer> =>
  read(exportUrl(name, query), keyOf(client));
const ids = ({ records }: Answer): unknown[] => records.map(({ _id }) => _id);

const expectBadRequest = async (url: string, ...details: string[]): Promise<void> => {
  const { status, error } = await call(url, { key: keyOf("acme") });
  expect(status, url).toBe(400);
  expect(error?.type).toBe("bad_request");
  for (const detail of details) expect(error?.details).toContain(detail);
};

const pagesOf = async (url: string, client = "acme", id = "_id"): Promise<unknown[][]> => {
  const pages: unknown[][] = [];
  for (let next: string | null | undefined = url; typeof next === "string"; ) {
    if (pages.length > 100) throw new Error("the walk does not end");
    const answer: Answer = await read(new URL(next, host).href, keyOf(client));
    pages.push(answer.records.map((record) => record[id]));
    next = answer.next;
  }
  return pages;
};

const WRONG_TIMES = [
  "2026-10-05T00:00:00",
  "2026-10-05T00:00:00 00:00",
  "2026-10-05T00:00:00+24:00",
  "2026-10-05 00:00:00Z",
  "2026-10-05",
  "1791158400",
  "2026-02-30T00:00:00Z",
  "2026-10-05T24:00:00Z",
  "2026-13-01T00:00:00Z",
  "yesterday",
] as const;
const RIGHT_TIMES = [
  "2026-10-05T00:00:00Z",
  "2026-10-05T00:00:00.0Z",
  "2026-10-05T00:00:00.000Z",
  "2026-10-05T00:00:00.000000Z",
  "2026-10-05T00:00:00.000000+00:00",
  "2026-10-05T02:00:00+02:00",
  "2026-10-04T18:30:00-0530",
] as const;
const TIME_PARAMETERS = [
  ["conversations", "created_since"],
  ["conversations", "created_to"],
  ["conversations", "updated_since"],
  ["conversations", "updated_to"],
  ["messages", "created_since"],
  ["messages", "created_to"],
] as const;

const withTime = (parameter: string, value: string): Query => {
  const [family = ""] = parameter.split("_");
  return { [`${family}_since`]: "2026-10-01T00:00:00Z", [parameter]: value };
};

describe("4.1 and 4.2, common to both lists", () => {
  it.each(LISTS)("%s: created_since is inclusive and created_to exclusive", async (name) => {
    const page = await list(name, { created_since: created(10), created_to: created(20) });
    expect(ids(page)).toEqual(range(10, 20).map(idOf));
    const last = await list(name, {
      created_since: created(19).replace("Z", "001Z"),
      created_to: created(20).replace("Z", "001Z"),
    });
    expect(ids(last)).toEqual([idOf(20)]);
  });

  it.each(
    LISTS,
  )("%s: a record of the instant created_since is in, one a microsecond older is not", async (name) => {
    const first = async (created_since: string): Promise<unknown> =>
      ids(await list(name, { created_since }))[0];
    expect(await first(created(10))).toBe(idOf(10));
    expect(await first(created(10).replace("000Z", "000001Z"))).toBe(idOf(11));
    expect(await first(created(9).replace("000Z", "000001Z"))).toBe(idOf(10));
  });

  it.each(LISTS)("%s: created_to defaults to created_since plus 7 days", async (name) => {
    const page = await list(name, { created_since: created(5) });
    expect(ids(page)).toEqual(range(5, 5 + WEEK).map(idOf));
    expect(page.next).toBeNull();
  });

  it.each(LISTS)("%s: created_to reaches further than 7 days, as far as one likes", async (name) => {
    const page = await list(name, { created_since: WHOLE.since, created_to: WHOLE.to });
    expect(ids(page)).toEqual(range(0, RECORDS).map(idOf));
  });

  it.each(LISTS)("%s: a bound before or behind all that is kept is no error", async (name) => {
    for (const [since, to] of [
      ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"],
      ["1969-12-31T23:59:59.999999Z", "2106-01-01T00:00:00Z"],
    ] as const) {
      const page = await list(name, { created_since: since, created_to: to });
      expect(ids(page)).toEqual(range(0, RECORDS).map(idOf));
    }
  });

  it.each(LISTS)("%s: created_to may be null or empty, which is as if it were absent", async (name) => {
    for (const created_to of ["null", ""]) {
      expect(ids(await list(name, { created_since: created(5), created_to }))).toEqual(
        range(5, 5 + WEEK).map(idOf),
      );
    }
  });

  it.each(
    TIME_PARAMETERS,
  )("%s: %s is ISO 8601 with Z or an offset, and nothing else", async (name, parameter) => {
    for (const value of WRONG_TIMES) {
      await expectBadRequest(exportUrl(name, withTime(parameter, value)), `${parameter}: must be`);
    }
    const answers: unknown[][] = [];
    for (const value of RIGHT_TIMES) answers.push(ids(await list(name, withTime(parameter, value))));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  });

  it.each(LISTS)("%s: page_size is 10000 by default, and at most", async (name) => {
    const window = { created_since: created(0), created_to: created(1) };
    const wanted = [range(0, 10_000).map(idOf), [idOf(10_000)]];
    expect(await pagesOf(exportUrl(name, window), "many")).toEqual(wanted);
    expect(await pagesOf(exportUrl(name, { ...window, page_size: 10_000 }), "many")).toEqual(wanted);
  });

  it.each(LISTS)("%s: page_size is at least 100", async (name) => {
    const page = await list(name, { created_since: created(0), page_size: 100 });
    expect(ids(page)).toEqual(range(0, 100).map(idOf));
    expect(page.next).toEqual(expect.any(String));
  });

  it.each(LISTS)("%s: page_size that is no integer from 100 to 10000 is refused", async (name) => {
    for (const page_size of ["99", "0", "-100", "10001", "99999999999", "100.5", "1e3", "0x100", "ten", ""]) {
      const url = exportUrl(name, { created_since: created(0), page_size });
      await expectBadRequest(url, "page_size: must be an integer from 100 to 10000");
    }
  });

  it.each(LISTS)("%s: an unknown parameter is refused by name, one given twice as well", async (name) => {
    const url = exportUrl(name, {
      created_since: created(0),
      page: "2",
      colour: "red",
      page_size: ["100", "200"],
    });
    await expectBadRequest(
      url,
      "page: unknown parameter",
      "colour: unknown parameter",
      "page_size: given more",
    );
  });

  it.each(LISTS)("%s: a body has no meaning", async (name) => {
    const url = exportUrl(name, { created_since: created(10), created_to: created(12) });
    const body = '{"page_size":1}';
    const answer = await new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${keyOf("acme")}`, "content-length": body.length };
      httpRequest(url, { method: "GET", headers }, (response) => {
        json(response).then(resolve, reject);
      })
        .on("error", reject)
        .end(body);
    });
    expect(answer).toMatchObject({ data: [{ _id: idOf(10) }, { _id: idOf(11) }] });
  });

  it.each(LISTS)("%s: the answer is application/json", async (name) => {
    const { headers } = await list(name, { created_since: created(0) });
    expect(headers.get("content-type")).toBe("application/json");
  });
});

describe("4.1 Conversations", () => {
  it("conversations: updated_since is inclusive and updated_to exclusive, in the order of updates", async () => {
    const page = await list("conversations", { updated_since: updated(10), updated_to: updated(20) });
    expect(ids(page)).toEqual(updatedIn(10, 20));
    const next = await list("conversations", { updated_since: updated(20), updated_to: updated(21) });
    expect(ids(next)).toEqual(updatedIn(20, 21));
  });

  it("conversations: updated_to defaults to updated_since plus 7 days, also when it is null or empty", async () => {
    for (const rest of [{}, { updated_to: "null" }, { updated_to: "" }]) {
      const page = await list("conversations", { updated_since: updated(5), ...rest });
      expect(ids(page)).toEqual(updatedIn(5, 5 + WEEK));
      expect(page.next).toBeNull();
    }
  });

  it("conversations: updated_to reaches further than 7 days", async () => {
    const page = await list("conversations", { updated_since: WHOLE.since, updated_to: WHOLE.to });
    expect(ids(page)).toEqual(updatedIn(0, RECORDS));
  });

  it.each([
    ["created_since", "updated_since"],
    ["created_since", "updated_to"],
    ["created_to", "updated_since"],
    ["created_to", "updated_to"],
  ])("conversations: %s and %s exclude each other", async (one, other) => {
    const url = exportUrl("conversations", { [one]: created(0), [other]: updated(9) });
    await expectBadRequest(url, `${one}, ${other}: created and updated filters exclude each other`);
  });

  it("conversations: one time filter is required", async () => {
    await expectBadRequest(
      exportUrl("conversations", { page_size: 100 }),
      "created_since, updated_since: one of them is required",
    );
  });

  it.each(["created", "updated"])("conversations: %s_to needs its lower bound", async (family) => {
    const url = exportUrl("conversations", { [`${family}_to`]: created(9) });
    await expectBadRequest(url, `${family}_to: needs ${family}_since`);
  });
});

describe("4.2 Messages", () => {
  it("messages: created_since is required", async () => {
    for (const query of [{}, { created_to: created(9) }, { conversation_id: "c-1" }] as Query[]) {
      await expectBadRequest(exportUrl("messages", query), "created_since: is required");
    }
    await expectBadRequest(exportUrl("messages", { created_since: "" }), "created_since: must be");
  });

  it("messages: there is no filter by update", async () => {
    for (const name of ["updated_since", "updated_to"]) {
      const url = exportUrl("messages", { created_since: created(0), [name]: updated(0) });
      await expectBadRequest(url, `${name}: unknown parameter`);
    }
  });

  it("messages: conversation_id selects the messages of one conversation", async () => {
    const wanted = range(0, RECORDS).filter((index) => index % CONVERSATIONS === 3);
    const query = { created_since: WHOLE.since, created_to: WHOLE.to, conversation_id: "c-3" };
    const page = await list("messages", query);
    expect(ids(page)).toEqual(wanted.map(idOf));
    const inWindow = { ...query, created_since: created(10), created_to: created(20) };
    expect(ids(await list("messages", inWindow))).toEqual([idOf(13), idOf(18)]);
    expect(ids(await list("messages", { ...query, conversation_id: "c-9" }))).toEqual([]);
  });

  it("messages: conversation_id may be null or empty, which is as if it were absent", async () => {
    for (const conversation_id of ["null", ""]) {
      const query = { created_since: created(0), created_to: created(7), conversation_id };
      expect(ids(await list("messages", query))).toEqual(range(0, 7).map(idOf));
    }
  });
});

describe("4.3 Pagination", () => {
  const walks = [
    ["conversations", "created"],
    ["conversations", "updated"],
    ["messages", "created"],
  ] as const;

  it.each(
    walks,
  )("%s by %s: the link carries the same window, and the last page has none", async (name, filter) => {
    const bounds = { [`${filter}_since`]: WHOLE.since, [`${filter}_to`]: WHOLE.to };
    const url = exportUrl(name, { ...bounds, page_size: 100 });
    const wanted = filter === "created" ? range(0, RECORDS).map(idOf) : updatedIn(0, RECORDS);
    const seen: unknown[] = [];
    let next: string | null | undefined = url;
    for (const size of [100, 100, 100, 40]) {
      const page: Answer = await read(next ?? "", keyOf("acme"));
      expect(page.records).toHaveLength(size);
      seen.push(...ids(page));
      next = page.next;
      if (size < 100) break;
      const query = Object.fromEntries(new URL(next ?? "").searchParams);
      expect(query).toEqual({ ...bounds, page_size: "100", cursor: expect.any(String) as unknown });
      expect(next?.startsWith(`${system.apiUrl}/v2/export/${name}?`)).toBe(true);
    }
    expect(next).toBeNull();
    expect(seen).toEqual(wanted);
  });

  it.each(walks)("%s by %s: the link makes a defaulted upper bound explicit", async (name, filter) => {
    const from = filter === "created" ? created(0) : updated(0);
    const { next } = await list(name, { [`${filter}_since`]: from, page_size: 100 });
    const query = new URL(next ?? "").searchParams;
    expect(query.get(`${filter}_since`)).toBe(from);
    const to = Date.parse(from) + WEEK * HOUR;
    expect(Date.parse(query.get(`${filter}_to`) ?? "")).toBe(to);
    const second = await read(next ?? "", keyOf("acme"));
    expect(second.records).toHaveLength(WEEK - 100);
    expect(second.next).toBeNull();
  });

  it("the link has its bounds in UTC with Z, also when they were given with an offset", async () => {
    const given = { created_since: "2026-10-05T02:00:00+02:00", created_to: "2026-10-10T00:00:00.5-00:00" };
    const { next } = await list("messages", { ...given, page_size: 100 });
    const query = new URL(next ?? "").searchParams;
    expect(query.get("created_since")).toBe("2026-10-05T00:00:00.000000Z");
    expect(query.get("created_to")).toBe("2026-10-10T00:00:00.500000Z");
    expect((await read(next ?? "", keyOf("acme"))).records).toHaveLength(21);
  });

  it("the link keeps conversation_id", async () => {
    const query = {
      created_since: created(0),
      created_to: created(1),
      conversation_id: "c",
      page_size: 10_000,
    };
    const { next } = await list("messages", query, "many");
    expect(new URL(next ?? "").searchParams.get("conversation_id")).toBe("c");
    expect(ids(await read(next ?? "", keyOf("many")))).toEqual([idOf(10_000)]);
  });

  it("a page of exactly all records has no link", async () => {
    const page = await list("messages", {
      created_since: created(0),
      created_to: created(100),
      page_size: 100,
    });
    expect(page.records).toHaveLength(100);
    expect(page.next).toBeNull();
  });

  it("an empty window is an empty page without a link", async () => {
    for (const [since, to] of [
      [created(20), created(10)],
      [created(10), created(10)],
      ["2000-01-01T00:00:00Z", "2000-01-02T00:00:00Z"],
    ]) {
      const { body } = await list("messages", { created_since: since ?? "", created_to: to ?? "" });
      expect(body).toEqual({ data: [], meta: { next_page_uri: null } });
    }
  });
});

describe("4.4 End users", () => {
  const PATH = "/api/v2/end-users/";
  const users = (query: Query, path = PATH): Promise<Answer> => read(urlOf(path, query), keyOf("acme"));
  const userIds = ({ records }: Answer): unknown[] => records.map(({ end_user_id }) => end_user_id);

  it("end users: limit is the number of records, 100 by default, 1 to 1000", async () => {
    expect(userIds(await users({}))).toEqual(range(0, 100).map(idOf));
    expect(userIds(await users({ limit: 1 }))).toEqual([idOf(0)]);
    expect(userIds(await users({ limit: 1_000 }))).toEqual(range(0, 1_000).map(idOf));
    for (const limit of ["0", "1001", "-1", "1.5", "all", ""]) {
      await expectBadRequest(urlOf(PATH, { limit }), "limit: must be an integer from 1 to 1000");
    }
  });

  it("end users: cursor is the id at which the records start, that one included", async () => {
    expect(userIds(await users({ cursor: idOf(41), limit: 2 }))).toEqual([idOf(41), idOf(42)]);
    expect(userIds(await users({ cursor: "r-00041x", limit: 1 }))).toEqual([idOf(42)]);
    expect(userIds(await users({ cursor: "zzz" }))).toEqual([]);
  });

  it("end users: next_page_url leads through all of them and is null at the end", async () => {
    const first = await users({ limit: 500 });
    expect(first.body).toMatchObject({
      meta: { next_page_url: `${host}${PATH}?cursor=${idOf(500)}&limit=500` },
    });
    const pages = await pagesOf(urlOf(PATH, { limit: 500 }), "acme", "end_user_id");
    expect(pages.map(({ length }) => length)).toEqual([500, 500, 50]);
    expect(pages.flat()).toEqual(range(0, END_USERS).map(idOf));
    expect((await users({ cursor: idOf(1_000) })).body).toMatchObject({ meta: { next_page_url: null } });
  });

  it("end users: the path has a slash at its end or none", async () => {
    const [one, other] = await Promise.all([users({ limit: 3 }), users({ limit: 3 }, PATH.slice(0, -1))]);
    expect(one.records).toHaveLength(3);
    expect(other.body).toEqual(one.body);
  });

  it("end users: external_id selects those whom another system knows by it", async () => {
    expect(userIds(await users({ external_id: "crm-7" }))).toEqual([7, 357, 707].map(idOf));
    const { next } = await users({ external_id: "crm-7", limit: 2 });
    expect(userIds(await read(next ?? "", keyOf("acme")))).toEqual([idOf(707)]);
    expect(userIds(await users({ external_id: "nobody" }))).toEqual([]);
  });

  it("end users: an unknown parameter is refused by name", async () => {
    await expectBadRequest(urlOf(PATH, { page_size: 100 }), "page_size: unknown parameter");
  });
});

describe("4.6 Legacy versions", () => {
  const window = { created_since: "2026-10-01T00:00:00", created_to: "2026-10-01T05:00:00.000000" };

  it.each(LEGACY_PATHS)("%s answers by created_since and created_to", async (path) => {
    expect(ids(await read(urlOf(path, window), keyOf("acme")))).toEqual(range(0, 5).map(idOf));
  });

  it.each(LEGACY_PAIRS)("%s has pages of 1 to 10000, by default 10000", async (path) => {
    const hundred = await read(urlOf(path, { created_since: created(0), page_size: 100 }), keyOf("acme"));
    expect(ids(hundred)).toEqual(range(0, 100).map(idOf));
    const one = await read(urlOf(path, { ...window, page_size: 1 }), keyOf("acme"));
    expect(ids(one)).toEqual([idOf(0)]);
    for (const page_size of ["0", "10001", "x"]) {
      const url = urlOf(path, { ...window, page_size });
      await expectBadRequest(url, "page_size: must be an integer from 1 to 10000");
    }
    const many = { created_since: created(0), created_to: created(1) };
    const pages = await pagesOf(urlOf(path, many), "many");
    expect(pages.map(({ length }) => length)).toEqual([10_000, 1]);
  });

  it.each(
    LEGACY_PAIRS,
  )("%s: timestamps may lack the Z and mean UTC, with a fraction and URL-encoded", async (path) => {
    for (const since of ["2026-10-01T03:00:00", "2026-10-01T03:00:00.000000", "2026-10-01T03:00:00.000Z"]) {
      for (const text of [since, encodeURIComponent(since)]) {
        const url = `${host}${path}?created_since=${text}&created_to=2026-10-01T05%3A00%3A00.000000`;
        expect(ids(await read(url, keyOf("acme")))).toEqual([idOf(3), idOf(4)]);
      }
    }
  });

  it.each(
    LEGACY_PAIRS.filter((path) => path.endsWith("messages")),
  )("%s: created_since is required, and a week is read without created_to", async (path) => {
    await expectBadRequest(urlOf(path, { created_to: created(4) }), "created_since: is required");
    const page = await read(urlOf(path, { created_since: created(1) }), keyOf("acme"));
    expect(ids(page)).toEqual(range(1, 1 + WEEK).map(idOf));
  });

  it.each(
    LEGACY_PAIRS.filter((path) => path.endsWith("messages")),
  )("%s: conversation_id selects the messages of one conversation, and the link keeps it", async (path) => {
    const query = { created_since: WHOLE.since, created_to: WHOLE.to, conversation_id: "c-3", page_size: 50 };
    const wanted = range(0, RECORDS).filter((index) => index % CONVERSATIONS === 3);
    const first = await read(urlOf(path, query), keyOf("acme"));
    expect(new URL(first.next ?? "", host).searchParams.get("conversation_id")).toBe("c-3");
    expect((await pagesOf(urlOf(path, query))).flat()).toEqual(wanted.map(idOf));
    for (const conversation_id of ["", "null"]) {
      const all = await read(urlOf(path, { ...window, conversation_id }), keyOf("acme"));
      expect(ids(all)).toEqual(range(0, 5).map(idOf));
    }
    const others = path.replace("messages", "conversations");
    await expectBadRequest(urlOf(others, query), "conversation_id: unknown parameter");
  });

  it.each(LEGACY_PAIRS)("%s: the link is relative to the host and null at the end", async (path) => {
    const first = await read(urlOf(path, { created_since: created(0), page_size: 100 }), keyOf("acme"));
    expect(first.next?.startsWith(`${path}?created_since=`)).toBe(true);
    const second = await read(host + (first.next ?? ""), keyOf("acme"));
    expect(ids(second)).toEqual(range(100, WEEK).map(idOf));
    expect(second.next).toBeNull();
  });
});
