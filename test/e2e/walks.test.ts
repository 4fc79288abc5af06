import { afterAll, beforeAll, expect, it } from "vitest";
import { createDelivery } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { bySize, isFullSize } from "../system/size.ts";
import { joinSystem } from "../system/join-system.ts";
import type { RunningSystem } from "../system/system.ts";
import type { BusEvent } from "../sample/index.ts";

/** More than the largest page within one millisecond: at least ten share each microsecond. */
const RECORDS = bySize(10_500, 20_500);
const SAME_MICROSECOND = 300;
const TIED_MICROSECOND = 40;
const MILLISECOND = "2026-10-01T12:00:00.123";
const SINCE = "2026-10-01T12:00:00.122Z";
const TO = "2026-10-01T12:00:00.125Z";
/** At reduced size, pages of a hundred walk only the beginning, with the largest tie. */
const END_OF_SMALL_PAGES = bySize("2026-10-01T12:00:00.123120Z", TO);

const microsecondOf = (index: number): number =>
  index < SAME_MICROSECOND ? TIED_MICROSECOND : (index * 7919) % 1000;
const dateOf = (index: number): string => `${MILLISECOND}${String(microsecondOf(index)).padStart(3, "0")}Z`;
const idOf = (index: number): string => `r${String((index * 10_007) % RECORDS).padStart(5, "0")}`;

const events = function* (): Generator<BusEvent> {
  for (let index = 0; index < RECORDS; index += 1) {
    const [id, date] = [idOf(index), dateOf(index)];
    const common = { client: "ties", id, time: "2026-10-02T00:00:00Z" };
    yield handMade({
      ...common,
      kind: "conversation",
      // Updates tie as well, in another order than creations.
      data: { _id: id, date_created: date, date_updated: dateOf(RECORDS - 1 - index) },
    });
    yield handMade({
      ...common,
      kind: "message",
      data: { _id: id, conversation_id: "c", date_created: date },
    });
  }
};

const expectedIds = (date: (index: number) => string, to: string): string[] =>
  Array.from({ length: RECORDS }, (_, index) => ({ id: idOf(index), date: date(index) }))
    .filter((record) => record.date < to)
    .sort((a, b) => (a.date === b.date ? (a.id < b.id ? -1 : 1) : a.date < b.date ? -1 : 1))
    .map(({ id }) => id);

type Body = {
  data: { _id: string }[];
  next_page_uri?: string | null;
  meta?: { next_page_uri: string | null };
};

const CLIENTS = {
  "follows the link": (first: string, link: string): string => new URL(link, first).href,
  "prefixes its host to the link": (first: string, link: string): string =>
    `${new URL(first).origin}${link.startsWith("/") ? "" : "/"}${link}`,
  "takes the lower bound alone": (first: string, link: string): string => {
    const next = new URL(first);
    const query = new URL(link, first).searchParams;
    for (const name of ["created_since", "updated_since"]) {
      const value = query.get(name);
      if (value !== null) next.searchParams.set(name, value);
    }
    return next.href;
  },
} as const;

const LISTS = {
  "v2 conversations by creation": { path: "/api/v2/export/conversations", filter: "created", date: dateOf },
  "v2 conversations by update": {
    path: "/api/v2/export/conversations",
    filter: "updated",
    date: (index: number) => dateOf(RECORDS - 1 - index),
  },
  "v2 messages": { path: "/api/v2/export/messages", filter: "created", date: dateOf },
  "legacy conversations": { path: "/data_api/v1/conversations", filter: "created", date: dateOf },
  "legacy messages": { path: "/data_api/v1.2/messages", filter: "created", date: dateOf },
} as const;

/** Every list, size and client; pages of a hundred, which ties exceed, in both styles. */
const CASES = [
  ["v2 conversations by creation", 100, "follows the link"],
  ["v2 conversations by creation", 100, "takes the lower bound alone"],
  ["v2 conversations by creation", 1_000, "prefixes its host to the link"],
  ["v2 conversations by creation", 10_000, "follows the link"],
  ["v2 conversations by update", 100, "prefixes its host to the link"],
  ["v2 conversations by update", 100, "takes the lower bound alone"],
  ["v2 conversations by update", 1_000, "follows the link"],
  ["v2 conversations by update", 10_000, "prefixes its host to the link"],
  ["v2 conversations by update", 1_000, "takes the lower bound alone"],
  ["v2 messages", 100, "follows the link"],
  ["v2 messages", 100, "takes the lower bound alone"],
  ["v2 messages", 1_000, "prefixes its host to the link"],
  ["v2 messages", 10_000, "takes the lower bound alone"],
  ["legacy conversations", 100, "prefixes its host to the link"],
  ["legacy conversations", 100, "takes the lower bound alone"],
  ["legacy conversations", 1_000, "follows the link"],
  ["legacy conversations", 10_000, "follows the link"],
  ["legacy messages", 100, "follows the link"],
  ["legacy messages", 100, "takes the lower bound alone"],
  ["legacy messages", 1_000, "prefixes its host to the link"],
  ["legacy messages", 10_000, "prefixes its host to the link"],
] as const;

const walk = async (
  first: string,
  key: string,
  next: (first: string, link: string) => string,
): Promise<{ pages: string[][]; links: string[] }> => {
  const [pages, links]: [string[][], string[]] = [[], []];
  for (let url: string | null = first; url !== null; ) {
    const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} for ${url}: ${text}`);
    const body = JSON.parse(text) as Body;
    pages.push(body.data.map(({ _id }) => _id));
    const link: string | null =
      body.meta === undefined ? (body.next_page_uri ?? null) : body.meta.next_page_uri;
    if (link !== null) links.push(link);
    if (pages.length > RECORDS) throw new Error("the walk does not end");
    url = link === null ? null : next(first, link);
  }
  return { pages, links };
};

it.each(CASES)("%s in pages of %d: a client that %s gets everything once", async (list, size, kind) => {
  const { path, filter, date } = LISTS[list];
  const to = size === 100 ? END_OF_SMALL_PAGES : TO;
  const base = kind === "takes the lower bound alone" ? advancingOrigin : origin;
  const first = `${base}${path}?${filter}_since=${SINCE}&${filter}_to=${to}&page_size=${size}`;
  const { pages } = await walk(first, key, CLIENTS[kind]);
  const expected = expectedIds(date, to);
  expect(expected.length).toBeGreaterThan(isFullSize ? 20_000 : size > 100 ? 10_000 : 1_500);
  expect(pages.flat()).toEqual(expected);
  if (size < 10_000) expect(pages.length).toBeGreaterThan(10);
});

it("the style of a client goes before that of the service, and a cursor splits a tie larger than a page may grow", async () => {
  await system.ops("clients", "create", "stepping", "--link-bounds", "advancing");
  const stepping = await system.key("stepping");
  await system.sql(
    `INSERT INTO messages (client_id, date_created, message_id, version, record)
      SELECT 'stepping', toDateTime64('${MILLISECOND}000', 6, 'UTC') + toIntervalMicrosecond(least(number, 150)),
        leftPad(toString(number), 6, '0') AS id, 1, concat('{"_id":"', id, '"}') FROM numbers(10400)`,
  );
  const first = `${origin}/api/v2/export/messages?created_since=${SINCE}&created_to=${TO}&page_size=100`;
  const { pages, links } = await walk(first, stepping, CLIENTS["follows the link"]);
  expect(pages.map(({ length }) => length)).toEqual([100, 50, 10_100, 150]);
  expect(pages.flat()).toEqual(Array.from({ length: 10_400 }, (_, at) => String(at).padStart(6, "0")));
  const queries = links.map((link) => new URL(link).searchParams);
  expect(queries.map((query) => query.get("created_since"))).not.toContain(SINCE);
  for (const query of queries) expect(query.get("created_to")).toBe(TO);
  expect(queries.map((query) => query.has("cursor"))).toEqual([false, false, true]);
});

let system: RunningSystem;
let key = "";
let origin = "";
let advancingOrigin = "";

beforeAll(async () => {
  system = await joinSystem();
  key = await system.key("ties");
  origin = new URL(system.apiUrl).origin;
  const advancing = await system.anotherApi({ LINK_BOUNDS: "advancing" });
  advancingOrigin = new URL(advancing.apiUrl).origin;
  const delivery = createDelivery(system);
  await delivery.send(events());
  await system.caughtUp(120_000);
});
afterAll(() => system?.stop());
