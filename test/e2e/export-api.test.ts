import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import { createKey } from "@conversation-export/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runSql } from "../system/warehouse-sql.ts";
import { type ExpectedRecord, fold, type Folded, windowCreated, windowUpdated } from "../reference/index.ts";
import { createComparison } from "../compare/comparison.ts";
import { createDelivery } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { ops } from "../system/ops.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until, within } from "../system/until.ts";
import { getPage, splitPage } from "../compare/walk.ts";
import { type BusEvent, createSample } from "../sample/index.ts";

const GROUP = "conversation-export-ingest";
const CONVERSATIONS = bySize(500, 20_000);
/** More records of one instant than a page and its extension hold at the default page size of the walks. */
const TIED = 12_000;
const LARGE = 2_000;
const TIE = "2026-10-01T12:00:00.123456Z";
const SINCE = "1970-01-01T00:00:00Z";
const TO = "2105-12-31T00:00:00Z";
const ALL = 1n << 62n;

/** Records of one instant. */
const tiedEvents = function* (): Generator<BusEvent> {
  for (let index = 0; index < TIED; index += 1) {
    const id = `tied-${String((index * 7919) % TIED).padStart(5, "0")}`;
    const data = { _id: id, date_created: TIE };
    yield handMade({ kind: "conversation", client: "ties", id, time: "2026-10-02T00:00:00Z", data });
  }
};

/** Records too large for a page of them to fit into a few socket buffers. */
const largeEvents = function* (): Generator<BusEvent> {
  for (let index = 0; index < LARGE; index += 1) {
    const id = `large-${index}`;
    const data = { _id: id, date_created: TIE, inquiry_summary: `${id} `.repeat(1_800) };
    yield handMade({ kind: "conversation", client: "large", id, time: "2026-10-02T00:00:00Z", data });
  }
};

/** The address of the next request, as different clients derive it from the link. */
const followers = {
  "follows the link": (_first: string, link: string): string => link,
  "prefixes its host to the link": (first: string, link: string): string =>
    `${new URL(first).origin}/${link}`,
  "prefixes its base to the link": (first: string, link: string): string =>
    `${new URL(first).origin}/api/${link}`,
  "takes the lower bound alone": (first: string, link: string): string => {
    const next = new URL(first);
    for (const name of ["created_since", "updated_since"]) {
      const value = new URL(link).searchParams.get(name);
      if (value !== null) next.searchParams.set(name, value);
    }
    return next.toString();
  },
} as const;

describe("the export interface over real servers", () => {
  let system: System;
  let expected: Folded;
  /** The same service with LINK_BOUNDS=advancing. */
  let advancingUrl = "";
  let operator: Record<string, string> = {};
  const keys = new Map<string, string>();
  const keyOf = (client: string): string => keys.get(client) ?? "";

  beforeAll(async () => {
    const seed = seedOfRun("export-api");
    system = await startSystem("test-export-api");
    operator = { CLICKHOUSE_URL: system.stack.clickhouse.url("migrator") };
    const [advancing, ingest] = await Promise.all([
      system.anotherApi({ LINK_BOUNDS: "advancing" }),
      system.service("ingest"),
      system.service("export-api", { KEY_CACHE_SECONDS: "2" }),
      ops(operator, "clients", "create", "steps", "--link-bounds", "advancing"),
    ]);
    advancingUrl = advancing.apiUrl;
    for (const client of ["acme", "globex", "large", "steps", "ties"])
      keys.set(client, await system.key(client));
    const delivery = createDelivery(system);
    await delivery.send(
      createSample({
        seed,
        conversations: CONVERSATIONS,
        messagesPerConversation: 4,
        clients: ["acme", "globex", "steps"],
      }),
    );
    await delivery.send(tiedEvents());
    await delivery.send(largeEvents());
    await system.caughtUp(GROUP, 120_000);
    await ingest.kill("SIGTERM");
    expected = fold(delivery.delivered);
  });
  afterAll(() => system?.stop());

  const listUrl = (base: string, list: string, filter: string, pageSize: number): string =>
    `${base}/v2/export/${list}?${filter}_since=${SINCE}&${filter}_to=${TO}&page_size=${pageSize}`;

  const expectWalk = async (
    records: readonly ExpectedRecord[],
    first: string,
    key: string,
    next: (first: string, link: string) => string,
  ): Promise<number[]> => {
    const comparison = createComparison(records);
    const sizes: number[] = [];
    let url: string | null = first;
    while (url !== null) {
      if (sizes.length > records.length + 2) throw new Error("the walk does not end");
      const page = await getPage(url, key);
      comparison.take(page.records);
      sizes.push(page.records.length);
      url = page.next === null ? null : next(first, page.next);
    }
    const { problems, examples } = comparison.finish();
    expect({ problems, examples }).toEqual({ problems: 0, examples: [] });
    return sizes;
  };

  const answer = async (path: string, init: RequestInit = {}, key: string | undefined = keyOf("acme")) => {
    const headers = key === "" ? {} : { authorization: `Bearer ${key}` };
    const response = await fetch(`${system.apiUrl}${path}`, { headers, ...init });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const error = (type: string, message: string, details: string | null): string =>
    JSON.stringify({ errors: [{ type, message, details }] });

  describe("walks", () => {
    it.each([100, 1_000, 10_000])("give everything once in pages of %d", async (size) => {
      const { conversations, messages } = expected;
      const follow = followers["follows the link"];
      const walks = [
        [windowCreated(conversations, "acme", 0n, ALL), "conversations", "created", "acme"],
        [windowUpdated(conversations, "acme", 0n, ALL), "conversations", "updated", "acme"],
        [windowCreated(messages, "acme", 0n, ALL), "messages", "created", "acme"],
        [windowCreated(conversations, "ties", 0n, ALL), "conversations", "created", "ties"],
      ] as const;
      for (const [records, list, filter, client] of walks) {
        expect(records.length).toBeGreaterThan(100);
        const sizes = await expectWalk(
          records,
          listUrl(system.apiUrl, list, filter, size),
          keyOf(client),
          follow,
        );
        for (const read of sizes.slice(0, -1)) expect(read).toBe(size);
      }
    });

    it("give a tie larger than a page once by its update, too", async () => {
      const records = windowUpdated(expected.conversations, "ties", 0n, ALL);
      const first = listUrl(system.apiUrl, "conversations", "updated", 5_000);
      expect(await expectWalk(records, first, keyOf("ties"), followers["follows the link"])).toEqual([
        5_000, 5_000, 2_000,
      ]);
    });

    it.each(Object.entries(followers).slice(0, 3))("work for a client that %s", async (_name, next) => {
      const records = windowCreated(expected.messages, "globex", 0n, ALL);
      await expectWalk(records, listUrl(system.apiUrl, "messages", "created", 100), keyOf("globex"), next);
    });

    it.each(
      Object.entries(followers),
    )("with advancing bounds work for a client that %s", async (_name, next) => {
      for (const filter of ["created", "updated"] as const) {
        const window = filter === "created" ? windowCreated : windowUpdated;
        const records = window(expected.conversations, "acme", 0n, ALL);
        await expectWalk(records, listUrl(advancingUrl, "conversations", filter, 100), keyOf("acme"), next);
      }
    });

    it.each([
      "created",
      "updated",
    ] as const)("with advancing bounds give out a tie by %s whole", async (filter) => {
      const window = filter === "created" ? windowCreated : windowUpdated;
      const tie = window(expected.conversations, "ties", 0n, ALL);
      const first = listUrl(advancingUrl, "conversations", filter, 2_000);
      const next = followers["takes the lower bound alone"];
      expect(await expectWalk(tie, first, keyOf("ties"), next)).toEqual([TIED]);
    });

    it("with advancing bounds split a tie that is larger still by a cursor", async () => {
      const records = windowCreated(expected.conversations, "ties", 0n, ALL);
      const first = listUrl(advancingUrl, "conversations", "created", 1_000);
      expect(await expectWalk(records, first, keyOf("ties"), followers["follows the link"])).toEqual([
        11_000, 1_000,
      ]);
    });

    it("use the link style of the client where it has one", async () => {
      const records = windowUpdated(expected.conversations, "steps", 0n, ALL);
      const first = listUrl(system.apiUrl, "conversations", "updated", 100);
      await expectWalk(records, first, keyOf("steps"), followers["takes the lower bound alone"]);
      const { next } = await getPage(first, keyOf("steps"));
      const link = new URL(next ?? "");
      expect(link.searchParams.get("updated_since")).not.toBe(SINCE);
      expect(link.searchParams.get("updated_to")).toBe(TO);
      expect(link.searchParams.has("cursor")).toBe(false);
    });

    it("of one conversation give its messages and no others", async () => {
      const all = windowCreated(expected.messages, "acme", 0n, ALL);
      const byConversation = Map.groupBy(all, ({ conversationId }) => conversationId);
      const [id, wanted] = [...byConversation].sort(([, a], [, b]) => b.length - a.length)[0] ?? [];
      const first = `${listUrl(system.apiUrl, "messages", "created", 100)}&conversation_id=${encodeURIComponent(id ?? "")}`;
      await expectWalk(wanted ?? [], first, keyOf("acme"), followers["follows the link"]);
      expect(
        (
          await getPage(
            `${listUrl(system.apiUrl, "messages", "created", 100)}&conversation_id=nobody`,
            keyOf("acme"),
          )
        ).text,
      ).toBe('{"data":[],"meta":{"next_page_uri":null}}');
    });
  });

  describe("links and HEAD", () => {
    it("repeat the parameters of the request and stand in the header, too", async () => {
      const query = `created_since=${SINCE}&created_to=${TO}&page_size=100`;
      const get = await answer(`/v2/export/messages?${query}`);
      const { next } = splitPage(get.text);
      const link = new URL(next ?? "");
      expect(link.origin + link.pathname).toBe(`${system.apiUrl}/v2/export/messages`);
      expect(next).toContain(`?${query}&cursor=`);
      expect(get.headers.get("link")).toBe(`<${next}>; rel="next"`);
      expect(get.headers.get("content-type")).toBe("application/json");
      const head = await answer(`/v2/export/messages?${query}`, {
        method: "HEAD",
        headers: { authorization: `Bearer ${keyOf("acme")}` },
      });
      expect(head).toMatchObject({ status: 200, text: "" });
      expect(head.headers.get("link")).toBe(get.headers.get("link"));
      expect(head.headers.get("content-type")).toBe("application/json");
    });

    it("have the bounds in UTC with Z, also when they were given with an offset", async () => {
      const given = { created_since: "2026-10-05T02:00:00+02:00", created_to: "2026-10-08T00:00:00.5-00:00" };
      const query = new URLSearchParams({ ...given, page_size: "100" });
      const first = await answer(`/v2/export/messages?${query.toString()}`);
      const link = new URL(splitPage(first.text).next ?? "");
      expect(link.searchParams.get("created_since")).toBe("2026-10-05T00:00:00.000000Z");
      expect(link.searchParams.get("created_to")).toBe("2026-10-08T00:00:00.500000Z");
      const second = await answer(`/v2/export/messages${link.search}`);
      expect(second.status).toBe(200);
    });

    it("make a defaulted upper bound explicit: seven days", async () => {
      const { text } = await answer("/v2/export/messages?created_since=2026-10-05T00:00:00Z&page_size=100");
      const link = new URL(splitPage(text).next ?? "");
      expect(link.searchParams.get("created_to")).toMatch(/^2026-10-12T00:00:00(\.0+)?Z$/);
    });
  });

  describe("errors", () => {
    const VALID = `created_since=${SINCE}&created_to=${TO}&page_size=100`;

    it("refuse a cursor of another client, another window or another list", async () => {
      const { next } = await getPage(`${system.apiUrl}/v2/export/messages?${VALID}`, keyOf("acme"));
      const cursor = new URL(next ?? "").searchParams.get("cursor") ?? "";
      const refused = {
        status: 400,
        text: error("bad_request", "The request is invalid", "cursor: does not belong to this request"),
      };
      expect(await answer(`/v2/export/messages?${VALID}&cursor=${cursor}`)).toMatchObject({ status: 200 });
      expect(
        await answer(`/v2/export/messages?${VALID}&cursor=${cursor}`, {}, keyOf("globex")),
      ).toMatchObject(refused);
      expect(await answer(`/v2/export/conversations?${VALID}&cursor=${cursor}`)).toMatchObject(refused);
      expect(await answer(`/v2/export/messages?${VALID}&conversation_id=x&cursor=${cursor}`)).toMatchObject(
        refused,
      );
      const other = VALID.replace(SINCE, "1970-01-01T00:00:01Z");
      expect(await answer(`/v2/export/messages?${other}&cursor=${cursor}`)).toMatchObject(refused);
    });

    it.each([
      ["conversations", "", "created_since, updated_since: one of them is required"],
      ["messages", "", "created_since: is required"],
      [
        "messages",
        "created_since=2026-10-05T00:00:00Z&limit=5&colour=red",
        "limit: unknown parameter; colour: unknown parameter",
      ],
      [
        "messages",
        "created_since=2026-10-05T00:00:00+00:00",
        "created_since: must be an existing ISO 8601 timestamp with Z or an offset, such as 2026-10-01T00:00:00Z; " +
          "a raw + in a query is read as a blank: write %2B instead, or the time in UTC with Z",
      ],
      [
        "messages",
        "created_since=2026-10-05T00:00:00Z&page_size=99",
        "page_size: must be an integer from 100 to 10000",
      ],
      [
        "messages",
        "created_since=2026-10-05T00:00:00Z&page_size=10001",
        "page_size: must be an integer from 100 to 10000",
      ],
      [
        "messages",
        "created_since=2026-10-05T00:00:00Z&created_since=2026-10-05T00:00:00Z",
        "created_since: given more than once",
      ],
      ["conversations", "created_to=2026-10-05T00:00:00Z", "created_to: needs created_since"],
      [
        "conversations",
        "created_since=2026-10-05T00:00:00Z&updated_since=2026-10-05T00:00:00Z",
        "created_since, updated_since: created and updated filters exclude each other",
      ],
    ])("name what is wrong: %s?%s", async (list, query, details) => {
      const { status, text, headers } = await answer(`/v2/export/${list}?${query}`);
      expect({ status, text }).toEqual({
        status: 400,
        text: error("bad_request", "The request is invalid", details),
      });
      expect(headers.get("content-type")).toBe("application/json");
    });

    it("tell a missing key from a wrong one", async () => {
      const path = `/v2/export/messages?${VALID}`;
      const none = await answer(path, {}, "");
      expect(none).toMatchObject({
        status: 401,
        text: error(
          "unauthorized",
          "An API key is required: send the header Authorization: Bearer <key>",
          null,
        ),
      });
      expect(none.headers.get("www-authenticate")).toBe('Bearer realm="conversation-export"');
      const wrong = await answer(path, {}, createKey().key);
      expect(wrong).toMatchObject({
        status: 401,
        text: error("unauthorized", "The API key cannot be verified", null),
      });
      expect(wrong.headers.get("www-authenticate")).toContain('error="invalid_token"');
    });

    it("answer other methods with 405 and other paths with 404", async () => {
      for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
        const { status, text, headers } = await answer("/v2/export/messages", { method });
        expect({ status, text }).toEqual({
          status: 405,
          text: error(
            "bad_request",
            "The method is not allowed for this resource",
            `method: ${method} is not one of GET, HEAD`,
          ),
        });
        expect(headers.get("allow")).toBe("GET, HEAD");
      }
      expect(await answer("/v2/export/nothing")).toMatchObject({
        status: 404,
        text: error("resource_not_found", "There is no such resource", null),
      });
    });
  });

  it("follows the life of clients and keys", async () => {
    const path = `/v2/export/messages?created_since=${SINCE}`;
    await ops(operator, "clients", "create", "brief");
    const create = async (): Promise<{ key: string; key_id: string }> =>
      JSON.parse(await ops(operator, "keys", "create", "--client", "brief", "--json")) as {
        key: string;
        key_id: string;
      };
    const [first, second] = [await create(), await create()];
    expect(await answer(path, {}, first.key)).toMatchObject({ status: 200 });
    expect(await answer(path, {}, second.key)).toMatchObject({ status: 200 });

    const redis = { REDIS_URL: system.stack.redis.urlOf("ops") };
    // Once more when Redis was too slow for the note, which nobody waits for.
    await until("the use of the key is told", 20_000, async () => {
      const other = await system.anotherApi({});
      const usedFrom = Date.now();
      const { status } = await fetch(`${other.apiUrl}${path}`, {
        headers: { authorization: `Bearer ${second.key}` },
      });
      expect(status).toBe(200);
      // What it would store within a minute is stored when it stops.
      await other.process.kill("SIGTERM");
      const list = await ops({ ...operator, ...redis }, "keys", "list", "--client", "brief", "--json");
      const used = (JSON.parse(list) as { key_id: string; last_used_at: string }[]).find(
        ({ key_id: id }) => id === second.key_id,
      );
      return Date.parse(used?.last_used_at ?? "") >= usedFrom;
    });

    await ops(operator, "keys", "revoke", first.key_id);
    expect(await answer(path, {}, second.key)).toMatchObject({ status: 200 });
    await ops(operator, "clients", "delete", "brief");
    await within("the revoked key is refused", 30_000, async () => {
      return (await answer(path, {}, first.key)).status === 401;
    });
    await within(
      "the client is missing",
      30_000,
      async () => (await answer(path, {}, second.key)).status === 404,
    );
    expect((await answer(path, {}, second.key)).text).toBe(
      error("resource_not_found", "The client brief does not exist", null),
    );
    expect(await answer(path, {}, first.key)).toMatchObject({ status: 401 });
  });

  describe("a page that is read slowly", () => {
    const begin = async (): Promise<IncomingMessage> => {
      const call = http.get(listUrl(system.apiUrl, "conversations", "created", 10_000), {
        headers: { authorization: `Bearer ${keyOf("large")}` },
        agent: false,
      });
      // A reset connection also raises an error on the request.
      call.on("error", () => {});
      const [response] = (await once(call, "response")) as [IncomingMessage];
      expect(response.statusCode).toBe(200);
      response.pause();
      return response;
    };
    const running = async (): Promise<number> =>
      Number(
        await runSql(
          operator["CLICKHOUSE_URL"] ?? "",
          "SELECT count() FROM system.processes WHERE user = 'reader' AND query LIKE '%FROM conversations%'",
        ),
      );

    it("is cancelled in ClickHouse when its client goes away", async () => {
      const response = await begin();
      await until("the query runs", 5_000, async () => (await running()) === 1);
      response.destroy();
      await until("the query is gone", 10_000, async () => (await running()) === 0);
    });

    it("never ends cleanly when ClickHouse dies midway; then 503 until it is back", async () => {
      const response = await begin();
      await until("the query runs", 5_000, async () => (await running()) === 1);
      const ended = new Promise<string>((resolve) => {
        response.once("end", () => resolve("ended cleanly"));
        response.once("error", (failure) => resolve(`broken: ${failure.message}`));
      });
      await system.stack.clickhouse.kill();
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.resume();
      const end = await ended;
      expect(end).toContain("broken");
      expect(response.complete).toBe(false);
      expect(() => JSON.parse(Buffer.concat(chunks).toString()) as unknown).toThrow(SyntaxError);

      const down = await answer(`/v2/export/messages?created_since=${SINCE}`);
      expect(down.status).toBe(503);
      expect(Number(down.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(down.headers.get("content-type")).toBe("application/json");
      const body = JSON.parse(down.text) as { errors: Record<string, unknown>[] };
      expect(body).toEqual({
        errors: [
          {
            type: "internal_server_error",
            message: "The service is unavailable for a moment",
            details: expect.stringMatching(/^error_id: [0-9a-f-]{36}$/) as unknown,
          },
        ],
      });
      await system.stack.clickhouse.start();
      await until("pages are served again", 10_000, async () => {
        return (await answer(`/v2/export/messages?created_since=${SINCE}`)).status === 200;
      });
    });
  });
});
