import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDelivery } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { bySize, isFullSize } from "../system/size.ts";
import { joinSystem } from "../system/join-system.ts";
import type { RunningSystem } from "../system/system.ts";
import type { BusEvent } from "../sample/index.ts";

const GROUP = "conversation-export-ingest";
/** More than the largest page, all within one millisecond, so that ten at least share each microsecond. */
const RECORDS = bySize(10_500, 20_500);
const SAME_MICROSECOND = 300;
const TIED_MICROSECOND = 40;
const MILLISECOND = "2026-10-01T12:00:00.123";
const SINCE = "2026-10-01T12:00:00.122Z";
const TO = "2026-10-01T12:00:00.125Z";
/**
 * Pages of a hundred need as many requests: at reduced size they walk the beginning, with the largest tie.
 */
const END_OF_SMALL_PAGES = bySize("2026-10-01T12:00:00.123150Z", TO);

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

/** The ids of a window in the expected order. */
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

/** The address of the next request, as three kinds of client derive it from a link. */
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

describe.each([100, 1_000, 10_000])("walks over ties in pages of %d", (size) => {
  const to = size === 100 ? END_OF_SMALL_PAGES : TO;

  describe.each(Object.entries(LISTS))("%s", (_name, { path, filter, date }) => {
    it.each(Object.entries(CLIENTS))("a client that %s gets everything once", async (kind, next) => {
      const base = kind === "takes the lower bound alone" ? advancingOrigin : origin;
      const first = `${base}${path}?${filter}_since=${SINCE}&${filter}_to=${to}&page_size=${size}`;
      const ids: string[] = [];
      let pages = 0;
      for (let url: string | null = first; url !== null; ) {
        const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
        const text = await response.text();
        if (response.status !== 200) throw new Error(`${response.status} for ${url}: ${text}`);
        const body = JSON.parse(text) as Body;
        ids.push(...body.data.map(({ _id }) => _id));
        const link: string | null =
          body.meta === undefined ? (body.next_page_uri ?? null) : body.meta.next_page_uri;
        pages += 1;
        if (pages > RECORDS) throw new Error("the walk does not end");
        url = link === null ? null : next(first, link);
      }
      const expected = expectedIds(date, to);
      expect(expected.length).toBeGreaterThan(isFullSize ? 20_000 : size > 100 ? 10_000 : 1_500);
      expect(ids).toEqual(expected);
      if (size < 10_000) expect(pages).toBeGreaterThan(10);
    });
  });
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
  await system.caughtUp(GROUP, 120_000);
});
afterAll(() => system?.stop());
