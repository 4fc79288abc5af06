import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, call, ingestAll, read } from "../conformance/call.ts";
import {
  ALL_LEGACY_OPERATIONS,
  CAMPAIGN,
  EXPORT_OPERATIONS,
  LEGACY_OPERATIONS,
  type Operation,
} from "../conformance/operations.ts";
import { readParquet } from "../outside/parquet-file.ts";
import { createDelivery } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { joinSystem } from "../system/join-system.ts";
import type { RunningSystem } from "../system/system.ts";
import { until } from "../system/until.ts";
import type { BusEvent } from "../sample/index.ts";

const SCOPES = ["export", "end_users", "compliance", "campaigns"];
/** Their records have equal ids and dates; one field of each names its client. */
const CLIENTS = ["alpha", "beta"] as const;
type Client = (typeof CLIENTS)[number];
const RECORDS = 120;
const PAGE = 100;
const START = Date.UTC(2026, 9, 1);

const idOf = (index: number): string => `same-${String(index).padStart(3, "0")}`;
const ALL_IDS = Array.from({ length: RECORDS }, (_, index) => idOf(index));

const events = function* (client: Client): Generator<BusEvent> {
  for (const [index, id] of ALL_IDS.entries()) {
    const date_created = new Date(START + index * 60_000).toISOString();
    const common = { client, id, time: "2026-10-05T00:00:00Z" };
    const handoffs = [{ id: "attempt", date_created, reasoning: client }];
    yield handMade({
      ...common,
      kind: "conversation",
      data: { _id: id, date_created, chatter_id: client, handoffs },
    });
    const message = { _id: id, conversation_id: "same", date_created, sender: client };
    yield handMade({ ...common, kind: "message", data: message });
    const profile = { first_name: client, system_properties: { crm_id: "same" } };
    yield handMade({
      ...common,
      kind: "end_user",
      data: { end_user_id: id, created_at: date_created, profile },
    });
  }
  const id = `only-${client}`;
  const data = { _id: id, conversation_id: id, date_created: "2026-10-02T00:00:00Z", sender: client };
  yield handMade({ client, id, time: "2026-10-05T00:00:00Z", kind: "message", data });
};

const ofConversation: Operation = {
  name: "messages of one conversation",
  method: "GET",
  path: `${EXPORT_OPERATIONS.find(({ name }) => name === "messages")?.path ?? ""}&conversation_id=same`,
  scope: "export",
};
const SIGNED: readonly Operation[] = [...EXPORT_OPERATIONS, ofConversation, ...LEGACY_OPERATIONS];
const ALL_SIGNED: readonly Operation[] = [...EXPORT_OPERATIONS, ofConversation, ...ALL_LEGACY_OPERATIONS];
const signed = SIGNED.map((operation) => [operation.name, operation] as const);
const lines = EXPORT_OPERATIONS.map((operation) => [operation.name, operation] as const);
const LINES = { accept: "application/x-ndjson" };
const files: readonly (readonly [name: string, path: string])[] = [
  ...[...EXPORT_OPERATIONS, ofConversation].map(({ name, path }) => [name, path] as const),
  ["end users", "/api/v2/end-users"],
];

let system: RunningSystem;
let host = "";
let [advancing, foreign] = ["", ""];
const keys = new Map<Client, string>();
const keyOf = (client: Client): string => keys.get(client) ?? "";

beforeAll(async () => {
  system = await joinSystem();
  host = new URL(system.apiUrl).origin;
  const delivery = createDelivery(system);
  for (const client of CLIENTS) {
    await delivery.send(events(client));
    keys.set(client, await system.key(client, SCOPES));
  }
  const start = async (env: Readonly<Record<string, string>>): Promise<string> =>
    new URL((await system.anotherApi(env)).apiUrl).origin;
  [advancing, foreign] = await Promise.all([
    start({ LINK_BOUNDS: "advancing" }),
    start({ CURSOR_SECRET: "another secret of 32 characters!" }),
    ingestAll(system),
    system.ops("campaigns", "create", CAMPAIGN, "--client", "alpha"),
    system.ops("campaigns", "create", "common", "--client", "alpha"),
    system.ops("campaigns", "create", "common", "--client", "beta"),
  ]);
});
afterAll(() => system?.stop());

const firstUrl = ({ path }: Operation, base = host): string => `${base}${path}&page_size=${PAGE}`;

const ownersOf = (record: Record<string, unknown>): unknown[] => {
  const handoffs = (record["handoffs"] ?? []) as { reasoning: string }[];
  const profile = record["profile"] as { first_name: string } | undefined;
  const owners = [
    record["chatter_id"],
    record["sender"],
    profile?.first_name,
    ...handoffs.map((one) => one.reasoning),
  ];
  return owners.filter((owner) => owner !== undefined && owner !== null);
};

const expectOwn = (records: readonly Record<string, unknown>[], client: Client): void => {
  expect(records.length).toBeGreaterThan(0);
  for (const record of records) expect(new Set(ownersOf(record))).toEqual(new Set([client]));
};

const expectForeign = (answer: Answer): void => {
  expect(answer.status).toBe(400);
  expect(answer.error).toMatchObject({
    type: "bad_request",
    details: "cursor: does not belong to this request",
  });
  expect(answer.records).toEqual([]);
};

const linkOf = async (operation: Operation, client: Client, base = host): Promise<URL> => {
  const { next } = await read(firstUrl(operation, base), keyOf(client));
  const link = new URL(next ?? "", base);
  expect(link.searchParams.get("cursor")).toEqual(expect.any(String));
  return link;
};

const walk = async (url: string, client: Client): Promise<Record<string, unknown>[]> => {
  const records: Record<string, unknown>[] = [];
  for (let next: string | null | undefined = url; typeof next === "string"; ) {
    if (records.length > 2 * RECORDS) throw new Error("the walk does not end");
    const page: Answer = await read(new URL(next, host).href, keyOf(client));
    records.push(...page.records);
    next = page.next;
  }
  return records;
};

/** Legacy links work under both prefixes. */
const sameOperation = (one: Operation, other: Operation): boolean =>
  one.name.replace(/^\/api/, "") === other.name.replace(/^\/api/, "");

describe("records of one client", () => {
  it.each(signed)("%s: each client reads its own records alone", async (_name, operation) => {
    for (const client of CLIENTS) {
      const records = await walk(firstUrl(operation), client);
      expectOwn(records, client);
      const found = records.map(({ _id }) => String(_id)).filter((id) => id.startsWith("same-"));
      expect(found).toEqual(ALL_IDS);
    }
  });

  it.each(lines)("%s as lines: each client reads its own records alone", async (_name, operation) => {
    for (const client of CLIENTS) {
      const { text } = await read(host + operation.path, keyOf(client), { headers: LINES });
      const records = text.trimEnd().split("\n").slice(0, -1);
      expectOwn(
        records.map((line) => JSON.parse(line) as Record<string, unknown>),
        client,
      );
      expect(records.length).toBeGreaterThanOrEqual(RECORDS);
    }
  });

  it.each(files)("%s as Parquet: each client reads its own records alone", async (_name, path) => {
    for (const client of CLIENTS) {
      const headers = { authorization: `Bearer ${keyOf(client)}`, accept: "application/vnd.apache.parquet" };
      const answer = await fetch(host + path, { headers });
      expect(answer.status).toBe(200);
      const rows = await readParquet(Buffer.from(await answer.arrayBuffer()));
      expectOwn(rows, client);
      expect(rows.length).toBeGreaterThanOrEqual(RECORDS);
    }
  });

  it("messages of a conversation that is another client's are none", async () => {
    const url = firstUrl(ofConversation).replace("conversation_id=same", "conversation_id=only-alpha");
    expect((await read(url, keyOf("alpha"))).records).toHaveLength(1);
    expect((await read(url, keyOf("beta"))).records).toEqual([]);
  });

  it.each([
    "/api/v2/end-users/",
    "/api/v2/end-users",
  ])("%s: each client reads its own records alone", async (path) => {
    for (const client of CLIENTS) {
      const records = await walk(`${host}${path}?limit=${PAGE}`, client);
      expectOwn(records, client);
      expect(records.map((record) => record["end_user_id"])).toEqual(ALL_IDS);
      const selected = await walk(`${host}${path}?limit=${PAGE}&external_id=same`, client);
      expectOwn(selected, client);
      expect(selected).toHaveLength(RECORDS);
    }
  });

  it("a link of the end users holds a plain id, and gives its own records to whoever uses it", async () => {
    for (const query of ["", "&external_id=same"]) {
      const { next } = await read(`${host}/api/v2/end-users/?limit=${PAGE}${query}`, keyOf("alpha"));
      const page = await read(next ?? "", keyOf("beta"));
      expectOwn(page.records, "beta");
      expect(page.records.map((record) => record["end_user_id"])).toEqual(ALL_IDS.slice(PAGE, 2 * PAGE));
    }
  });

  it("a link without a cursor gives its own records to whoever uses it", async () => {
    for (const operation of SIGNED) {
      const { next } = await read(firstUrl(operation, advancing), keyOf("alpha"));
      const link = new URL(next ?? "", advancing);
      expect(link.searchParams.has("cursor")).toBe(false);
      expectOwn((await read(link.href, keyOf("beta"))).records, "beta");
    }
  });
});

describe("cursors", () => {
  it.each(signed)("%s: a link is good for its own client, and 400 for another", async (_name, operation) => {
    const link = await linkOf(operation, "alpha");
    expectOwn((await read(link.href, keyOf("alpha"))).records, "alpha");
    expectForeign(await call(link.href, { key: keyOf("beta") }));
    const head = await call(link.href, { key: keyOf("beta"), method: "HEAD" });
    expect(head).toMatchObject({ status: 400, text: "" });
    const own = await linkOf(operation, "beta");
    expect(own.searchParams.get("cursor")).not.toBe(link.searchParams.get("cursor"));
    expectForeign(await call(own.href, { key: keyOf("alpha") }));
  });

  it.each(lines)("%s as lines: a cursor of another client is 400", async (_name, operation) => {
    const link = await linkOf(operation, "alpha");
    const own = await read(link.href, keyOf("alpha"), { headers: LINES });
    expect(own.headers.get("content-type")).toBe("application/x-ndjson");
    expectForeign(await call(link.href, { key: keyOf("beta"), headers: LINES }));
  });

  it.each(signed)("%s: a cursor fits no other list, version or filter", async (_name, operation) => {
    const cursor = (await linkOf(operation, "alpha")).searchParams.get("cursor") ?? "";
    for (const other of ALL_SIGNED) {
      const url = `${firstUrl(other)}&cursor=${cursor}`;
      const answer = await call(url, { key: keyOf("alpha") });
      if (sameOperation(operation, other)) expect(answer.status, other.name).toBe(200);
      else expectForeign(answer);
    }
  });

  it.each(signed)("%s: a cursor fits no other window", async (_name, operation) => {
    const link = await linkOf(operation, "alpha");
    for (const [name, value] of link.searchParams) {
      if (!/_(?:since|to)$/.test(name)) continue;
      const other = new URL(link);
      other.searchParams.set(name, value.replace("00:00:00", "00:00:01"));
      expect(other.href).not.toBe(link.href);
      expectForeign(await call(other.href, { key: keyOf("alpha") }));
    }
  });

  it.each(signed)("%s: a cursor that was altered is 400", async (_name, operation) => {
    const link = await linkOf(operation, "alpha");
    const cursor = link.searchParams.get("cursor") ?? "";
    const bytes = Buffer.from(cursor, "base64url");
    const altered = [0, 31, 32, 40, bytes.length - 1].map((place) => {
      const copy = Buffer.from(bytes);
      copy.writeUInt8(copy.readUInt8(place) ^ 1, place);
      return copy.toString("base64url");
    });
    for (const text of [...altered, cursor.slice(0, -4), `${cursor}A`, `${cursor}=`, "A", idOf(1)]) {
      const other = new URL(link);
      other.searchParams.set("cursor", text);
      expectForeign(await call(other.href, { key: keyOf("alpha") }));
    }
  });

  it("a cursor that was signed with another secret is 400", async () => {
    for (const operation of SIGNED) {
      const link = await linkOf(operation, "alpha", foreign);
      expect((await call(link.href, { key: keyOf("alpha") })).status).toBe(200);
      expectForeign(await call(`${host}${link.pathname}${link.search}`, { key: keyOf("alpha") }));
    }
  });
});

describe("requests that write", () => {
  it.each(["v1", "v2"])("a %s erasure request is seen by its own client alone", async (version) => {
    const url = `${host}/api/${version}/data-subject-request`;
    const body = { type: "ERASURE", email: `noor-${version}@example.com` };
    const locations = new Map<Client, string>();
    for (const client of CLIENTS) {
      const { headers } = await read(url, keyOf(client), { method: "POST", body });
      locations.set(client, headers.get("location")?.split("/").at(-1) ?? "");
    }
    expect(new Set(locations.values()).size).toBe(2);
    for (const client of CLIENTS) {
      for (const [owner, id] of locations) {
        const answer = await call(`${url}/${id}`, { key: keyOf(client) });
        expect(answer.status).toBe(owner === client ? 200 : 404);
        if (owner !== client)
          expect(answer.error).toMatchObject({ type: "resource_not_found", details: null });
      }
    }
  });

  it("an SMS trigger of another client's campaign is 404, and an Idempotency-Key is each client's own", async () => {
    const trigger = (client: Client, campaign_key: string): Promise<Answer> =>
      call(`${host}/api/campaigns/sms/trigger`, {
        key: keyOf(client),
        method: "POST",
        headers: { "idempotency-key": `order-${campaign_key}` },
        body: { campaign_key, language: "en", recipient: { meta_fields: { phone_number: "+15550199123" } } },
      });
    await until("triggers are taken", 30_000, async () => (await trigger("alpha", CAMPAIGN)).status === 200);
    const refused = await trigger("beta", CAMPAIGN);
    expect(refused).toMatchObject({ status: 404, error: { type: "resource_not_found" } });
    const [one, other] = [await trigger("alpha", "common"), await trigger("beta", "common")];
    expect([one.status, other.status]).toEqual([200, 200]);
    expect(one.body).not.toEqual(other.body);
  });
});
