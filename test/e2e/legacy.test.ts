import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type ExpectedRecord,
  type ExpectedRecords,
  fold,
  type Folded,
  LEGACY_FIELDS,
  pickFields,
  windowCreated,
  windowUpdated,
} from "../reference/index.ts";
import { createComparison } from "../compare/comparison.ts";
import { createDelivery } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { joinSystem } from "../system/join-system.ts";
import type { RunningSystem } from "../system/system.ts";
import { splitPage } from "../compare/walk.ts";
import { type BusEvent, createSample } from "../sample/index.ts";

const CONVERSATIONS = bySize(1_500, 20_000);
const TIED = 300;
const TIE = "2026-10-06T12:00:00.123456Z";
const SINCE = "2026-10-01T00:00:00.000001";
const TO = "2026-12-01T00:00:00";
const ALL = 1n << 62n;
const YEAR_2000 = 946_684_800_000_000n;

type List = keyof typeof LEGACY_FIELDS;
type Version = keyof (typeof LEGACY_FIELDS)[List];
const VERSIONS = ["v1", "v1.1", "v1.2"] as const satisfies readonly Version[];
const LISTS = ["conversations", "messages"] as const satisfies readonly List[];

const tiedEvents = function* (client: string): Generator<BusEvent> {
  for (let index = 0; index < TIED; index += 1) {
    const id = `tied-${String((index * 7919) % TIED).padStart(5, "0")}`;
    const time = "2026-10-07T00:00:00Z";
    const dates = { date_created: TIE, date_updated: TIE };
    yield handMade({ kind: "conversation", client, id, time, data: { _id: id, ...dates } });
    const data = { _id: id, conversation_id: id, date_created: TIE, message_data: { _id: "inner", n: 1 } };
    yield handMade({ kind: "message", client, id, time, data });
  }
};

/** Texts that must leave unchanged: numbers, escapes, names like those of fields, an integer-like key first. */
const ODD = {
  id: "odd",
  data:
    '{"_id":"odd","date_created":"2026-10-05T00:00:00Z","chatter_id":"\\"é\\u0007😀\\\\",' +
    '"csat":{"score":1.0,"_id":9007199254740993,"sender":"}"},"agent_id":["a",null],' +
    '"variables":{"10":1E5,"2":-0,"is_escalated":[{"variables":{}}]},"metavariables":{"date_created":"]"}}',
};

const followers = {
  "follows the link": (first: string, link: string): string => new URL(link, first).toString(),
  "prefixes its host to the link": (first: string, link: string): string => new URL(first).origin + link,
  "prefixes its base with /api to the link": (first: string, link: string): string =>
    `${new URL(first).origin}/api${link}`,
  "takes the lower bound alone": (first: string, link: string): string => {
    const next = new URL(first);
    for (const name of ["created_since", "updated_since"]) {
      const value = new URL(link, first).searchParams.get(name);
      if (value !== null) next.searchParams.set(name, value);
    }
    return next.toString();
  },
} as const;
type Follower = keyof typeof followers;

type Page = { readonly records: string[]; readonly next: string | null; readonly headers: Headers };

describe("the legacy versions over real servers", () => {
  let system: RunningSystem;
  let expected: Folded;
  let apiUrl = "";
  let host = "";
  const keys = new Map<string, string>();

  beforeAll(async () => {
    const seed = seedOfRun("legacy");
    system = await joinSystem();
    const [api] = await Promise.all([
      system.anotherApi({
        LINK_BOUNDS: "advancing",
        LEGACY_DEPRECATION: "2026-12-31",
        LEGACY_SUNSET: "2027-06-30",
        RATE_LIMITS: "off",
      }),
      system.ops("clients", "create", "keeps", "--link-bounds", "same"),
    ]);
    apiUrl = api.apiUrl;
    host = new URL(apiUrl).origin;
    for (const client of ["keeps", "steps", "recent"]) keys.set(client, await system.key(client));
    const delivery = createDelivery(system);
    await delivery.send(
      createSample({
        seed,
        conversations: CONVERSATIONS,
        messagesPerConversation: bySize(2, 4),
        clients: ["keeps", "steps"],
      }),
    );
    for (const client of ["keeps", "steps"]) await delivery.send(tiedEvents(client));
    const now = Date.now();
    const day = 86_400_000;
    const recent = [now - day, now - 6 * day, now - 8 * day, now + day].map((at) =>
      new Date(at).toISOString(),
    );
    await delivery.send([
      handMade({ kind: "conversation", client: "keeps", time: "2026-10-05T01:00:00Z", ...ODD }),
      ...recent.map((date_created, index) => {
        const data = { _id: `recent-${index}`, date_created };
        return handMade({
          kind: "conversation",
          client: "recent",
          id: data._id,
          time: "2026-10-05T01:00:00Z",
          data,
        });
      }),
    ]);
    await system.caughtUp(120_000);
    expected = fold(delivery.delivered);
  });
  afterAll(() => system?.stop());

  const recordsOf = (list: List): ExpectedRecords =>
    list === "messages" ? expected.messages : expected.conversations;

  const get = async (url: string, client = "keeps", method = "GET") => {
    const headers = { authorization: `Bearer ${keys.get(client)}` };
    const response = await fetch(url, { method, headers });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  const getPage = async (url: string, client: string): Promise<Page> => {
    const { status, headers, text } = await get(url, client);
    expect(status, `${url}: ${text.slice(0, 500)}`).toBe(200);
    const end = text.lastIndexOf('],"message":"OK","next_page_uri":');
    expect(end).toBeGreaterThan(0);
    const rest = JSON.parse(`{${text.slice(end + 2)}`) as { next_page_uri: string | null };
    expect(Object.keys(rest)).toEqual(["message", "next_page_uri"]);
    const { records } = splitPage(`${text.slice(0, end)}],"meta":{"next_page_uri":null}}`);
    return { records, next: rest.next_page_uri, headers };
  };

  const expectWalk = async (options: {
    readonly records: readonly ExpectedRecord[];
    readonly fields: readonly string[];
    readonly first: string;
    readonly client: string;
    readonly follower: Follower;
  }): Promise<number[]> => {
    const { records, fields, first, client, follower } = options;
    const comparison = createComparison(
      records.map(({ id, json }) => ({ id, json: pickFields(json, fields) })),
    );
    const sizes: number[] = [];
    for (let url: string | null = first; url !== null; ) {
      if (sizes.length > records.length + 2) throw new Error("the walk does not end");
      const page = await getPage(url, client);
      comparison.take(page.records);
      sizes.push(page.records.length);
      url = page.next === null ? null : followers[follower](first, page.next);
    }
    const { problems, examples } = comparison.finish();
    expect({ problems, examples }).toEqual({ problems: 0, examples: [] });
    return sizes;
  };

  const listUrl = (path: string, filter: string, pageSize?: number, zone = ""): string =>
    `${host}${path}?${filter}_since=${encodeURIComponent(SINCE + zone)}&${filter}_to=${encodeURIComponent(TO + zone)}` +
    (pageSize === undefined ? "" : `&page_size=${pageSize}`);

  describe.each(LISTS)("%s", (list) => {
    it.each(VERSIONS)("of %s have exactly its fields, each as in v2", async (version) => {
      const records = windowCreated(recordsOf(list), "keeps", YEAR_2000, ALL);
      expect(records.length).toBeGreaterThan(TIED + 100);
      const fields = LEGACY_FIELDS[list][version];
      const first = listUrl(`/data_api/${version}/${list}`, "created");
      await expectWalk({ records, fields, first, client: "keeps", follower: "follows the link" });

      const [legacy, current] = await Promise.all([
        getPage(listUrl(`/data_api/${version}/${list}`, "created", 100), "keeps"),
        get(listUrl(`/api/v2/export/${list}`, "created", 100, "Z")),
      ]);
      const texts = splitPage(current.text).records;
      expect(texts).toHaveLength(100);
      expect(legacy.records).toEqual(texts.map((text) => pickFields(text, fields)));
    });

    it.each([
      [100, "keeps", "prefixes its base with /api to the link"],
      [1_000, "steps", "prefixes its host to the link"],
      [100, "steps", "takes the lower bound alone"],
    ] as const)("in pages of %d give %s, which %s, everything once", async (size, client, follower) => {
      for (const filter of list === "messages" ? (["created"] as const) : (["created", "updated"] as const)) {
        const window = filter === "created" ? windowCreated : windowUpdated;
        const records = window(recordsOf(list), client, YEAR_2000, ALL);
        const path = `${size === 1_000 ? "/api" : ""}/data_api/v1.2/${list}`;
        const first = listUrl(path, filter, size);
        const fields = LEGACY_FIELDS[list]["v1.2"];
        const sizes = await expectWalk({ records, fields, first, client, follower });
        if (client === "keeps") for (const read of sizes.slice(0, -1)) expect(read).toBe(size);
        else if (size === 100) expect(Math.max(...sizes)).toBeGreaterThanOrEqual(TIED);
      }
    });
  });

  it("gives odd texts as they came", async () => {
    const { text } = await get(
      `${host}/data_api/v1.2/conversations?created_since=2026-10-05T00:00:00&created_to=2026-10-05T00:00:00.000001`,
    );
    expect(text).toContain(
      '"csat":{"score":1.0,"_id":9007199254740993,"sender":"}"},"date_created":"2026-10-05T00:00:00.000000+00:00",',
    );
    expect(text).toContain('"variables":{"10":1E5,"2":-0,"is_escalated":[{"variables":{}}]}}');
    expect(text).toContain('"chatter_id":"\\"é\\u0007😀\\\\"');
  });

  it("means the last 7 days where a request for conversations has no filter", async () => {
    for (const prefix of ["", "/api"]) {
      const { text } = await get(`${host}${prefix}/data_api/v1/conversations`, "recent");
      const { data, ...rest } = JSON.parse(text) as { data: { _id: string }[] };
      expect(data.map(({ _id }) => _id)).toEqual(["recent-1", "recent-0"]);
      expect(rest).toEqual({ message: "OK", next_page_uri: null });
    }
  });

  it("announces the end of the versions on pages, HEAD and errors", async () => {
    const url = listUrl("/data_api/v1.1/messages", "created", 100);
    const page = await get(url);
    const next = (JSON.parse(page.text) as { next_page_uri: string }).next_page_uri;
    const successor = `<${apiUrl}/v2/export/messages>; rel="successor-version"`;
    expect(next).toMatch(/^\/data_api\/v1\.1\/messages\?created_since=2026-10-01T00%3A00%3A00\.000001&/);
    expect(page.headers.get("link")).toBe(successor);
    const head = await get(url, "keeps", "HEAD");
    expect(head).toMatchObject({ status: 200, text: "" });
    expect(head.headers.get("link")).toBe(page.headers.get("link"));
    const wrong = await get(`${host}/api/data_api/v1.1/messages?created_to=x&limit=1`);
    expect(wrong.status).toBe(400);
    expect(wrong.headers.get("link")).toBe(successor);
    expect(JSON.parse(wrong.text)).toMatchObject({
      errors: [
        {
          type: "bad_request",
          details: expect.stringMatching(/limit:.*created_since:.*created_to:/s) as unknown,
        },
      ],
    });
    const stranger = await get(url, "nobody");
    expect(stranger.status).toBe(401);
    for (const { headers } of [page, head, wrong, stranger]) {
      expect(headers.get("deprecation")).toBe("@1798675200");
      expect(headers.get("sunset")).toBe("Wed, 30 Jun 2027 00:00:00 GMT");
      expect(headers.get("content-type")).toBe("application/json");
    }
  });
});
