import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ingestAll, read } from "../conformance/call.ts";
import { LEGACY_PATHS, WHOLE } from "../conformance/operations.ts";
import {
  CONVERSATION_ROWS,
  CREATED,
  DATE_FORM,
  END_USER_ROWS,
  type FieldRow,
  INTENT_ROWS,
  ITEM_ROWS,
  MESSAGE_ROWS,
  MESSAGE_SHAPES,
  nullsOf,
  PROFILE_ROWS,
  requiredOf,
  valuesOf,
} from "../conformance/record-rows.ts";
import { createDelivery } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { REASON_CODES } from "../sample/handoffs.ts";
import { joinSystem } from "../system/join-system.ts";
import type { RunningSystem } from "../system/system.ts";
import type { BusEvent, RecordKind } from "../sample/index.ts";

type Item = Record<string, unknown>;

const CLIENT = "fields";
const INSTANT = "2026-10-07T00:00:00Z";
const LATER = "2026-10-07T01:00:00Z";
const LAST = "2026-10-07T02:00:00Z";

const event = (kind: RecordKind, data: Item, time = INSTANT): BusEvent => {
  const id = String(data[kind === "end_user" ? "end_user_id" : "_id"]);
  return handMade({ kind, client: CLIENT, id, time, data });
};

const attempt = (fields: Item): Item => ({ id: "attempt", date_created: CREATED, ...fields });
const minute = (number: number): string => `2026-10-05T12:0${number}:00.000000+00:00`;

/** With every value, with nulls, and with required fields only; all with an unknown field. */
const itemsOf = (list: string): Item[] => {
  const rows = ITEM_ROWS[list] ?? [];
  // Handoffs are merged by target and ordered by time, so each has its own.
  const own = (number: number): Item =>
    list === "handoffs" ? { id: `attempt-${number}`, date_created: minute(number) } : {};
  return [
    { ...valuesOf(rows), latency_ms: 12 },
    { ...nullsOf(rows), ...own(2) },
    { ...requiredOf(rows), ...own(3) },
  ];
};

const INSTANTS = {
  "2026-10-05T12:00:00.123456+00:00": CREATED,
  "2026-10-05T12:00:00.123456": CREATED,
  "2026-10-05T14:00:00.123456+02:00": CREATED,
  "2026-10-05T12:00:00Z": "2026-10-05T12:00:00.000000+00:00",
  "2026-10-05T12:00:00": "2026-10-05T12:00:00.000000+00:00",
};

const CLASSIFICATIONS = ["Resolved", "Not Resolved"];

const OUTSIDE = {
  conversation: {
    automated_resolution_classification: "Partly",
    classifications: [{ topic_id: "t", topic_name: "T", intents: [{ status: "paused" }] }],
    handoffs: [attempt({ reason_code: "queue_closed", outcome_status: "abandoned" })],
  },
  messages: [
    { review: 6 },
    { review: -1 },
    { message_data: { _type: "hologram", depth: 3 } },
    { message_data: { _type: "text", body: null } },
    { message_data: {} },
  ],
};

const conversations = (): BusEvent[] => {
  const lists = Object.fromEntries(Object.keys(ITEM_ROWS).map((list) => [list, itemsOf(list)]));
  const bare = (id: string, fields: Item = {}, time?: string): BusEvent =>
    event("conversation", { _id: id, date_created: CREATED, ...fields }, time);
  const target = { handoff_id: "h-1" };
  return [
    event("conversation", { ...valuesOf(CONVERSATION_ROWS), sentiment: "happy" }),
    event("conversation", { ...nullsOf(CONVERSATION_ROWS), _id: "nulls" }),
    event("conversation", { ...requiredOf(CONVERSATION_ROWS), _id: "bare" }),
    bare("items", lists),
    bare("intents", {
      classifications: [
        { topic_id: "t", intents: [{ ...valuesOf(INTENT_ROWS), confidence: 0.5 }, nullsOf(INTENT_ROWS), {}] },
      ],
    }),
    bare("reasons", {
      handoffs: [...REASON_CODES, null].map((reason_code, at) =>
        attempt({ id: `attempt-${at}`, handoff_id: reason_code, reason_code }),
      ),
    }),
    bare("rule-1", {
      handoffs: [
        attempt({ ...target, id: "late", date_created: minute(3) }),
        attempt({ ...target, id: "early", date_created: minute(1) }),
        attempt({ handoff_id: "h-2", id: "between", date_created: minute(2) }),
      ],
    }),
    bare("rule-2", { is_escalated: false, handoffs: [attempt({ outcome_status: "succeeded" })] }),
    bare("rule-3", { is_escalated: true, handoffs: [] }),
    bare("rule-4", { handoffs: [attempt(target), attempt({ id: "other" })] }),
    bare("rule-4", { browser: "later", handoffs: [attempt({ ...target, reasoning: "later" })] }, LATER),
    bare("rule-4", { browser: "last", handoffs: [] }, LAST),
    bare("rule-4-absent", { handoffs: [attempt(target)] }),
    bare("rule-4-absent", { browser: "later" }, LATER),
    bare("rule-5", {
      handoffs: [
        attempt({ handoff_id: "h-1", id: "a", date_created: minute(2), reasoning: "first export" }),
        attempt({ handoff_id: "h-2", id: "b", date_created: minute(3), reasoning: "first export" }),
        attempt({ handoff_id: null, id: "c", date_created: minute(4), reasoning: "first export" }),
        attempt({ handoff_id: "c", id: "d", date_created: minute(5), reasoning: "first export" }),
      ],
    }),
    bare(
      "rule-5",
      {
        handoffs: [
          attempt({ handoff_id: "h-1", id: "e", date_created: minute(1), reasoning: "earlier date" }),
          attempt({ handoff_id: "h-2", id: "f", date_created: minute(3), reasoning: "equal date" }),
          attempt({ handoff_id: null, id: "c", date_created: minute(6), reasoning: "later date" }),
        ],
      },
      LATER,
    ),
    bare("named-later", { handoffs: [attempt({ handoff_id: null, reasoning: "first export" })] }),
    bare("named-later", { handoffs: [attempt({ ...target, reasoning: "second export" })] }, LATER),
    bare("repeated", { handoffs: [attempt({ handoff_id: null })] }),
    bare("repeated", { handoffs: [attempt(target)] }, LATER),
    bare("repeated", { handoffs: [attempt({ ...target, id: "second", date_created: minute(9) })] }, LAST),
    bare("unnamed-later", { handoffs: [attempt(target)] }),
    bare("unnamed-later", { handoffs: [attempt({ handoff_id: null, reasoning: "second export" })] }, LATER),
    ...Object.keys(INSTANTS).map((date, at) =>
      bare(`instant-${at}`, {
        date_created: date,
        date_updated: date,
        handoffs: [attempt({ date_created: date })],
      }),
    ),
    bare("conversation-1"),
    bare("numeric", { chatter_id: 17 }),
    bare("agents", { agent_id: ["a-1", "a-2", "a-3"], agent_name: ["Ida", null, "Ida"] }),
    ...CLASSIFICATIONS.map((text) => bare(text, { automated_resolution_classification: text })),
    bare("outside", OUTSIDE.conversation),
    bare("no-agent", { last_agent_id: null, last_agent_name: null, changeset_id: "change-7" }),
  ];
};

const messages = (): BusEvent[] => {
  const bare = (id: string, fields: Item): BusEvent =>
    event("message", { ...requiredOf(MESSAGE_ROWS), _id: id, ...fields });
  return [
    event("message", { ...valuesOf(MESSAGE_ROWS), sentiment: "happy" }),
    event("message", { ...nullsOf(MESSAGE_ROWS), _id: "nulls" }),
    event("message", { ...requiredOf(MESSAGE_ROWS), _id: "bare" }),
    ...Object.entries(MESSAGE_SHAPES).map(([_type, fields]) =>
      bare(`shape-${_type}`, { message_data: { _type, ...fields } }),
    ),
    bare("none", { answer_id: "None", in_response_to: "None", answer_title: null }),
    ...[0, 1, 2, 3, 4, 5].map((review) => bare(`review-${review}`, { review })),
    bare("review-part", { review: 4.5 }),
    bare("orphan", { conversation_id: null }),
    bare("numeric", { conversation_id: 17 }),
    ...OUTSIDE.messages.map((fields, at) => bare(`outside-${at}`, fields)),
    ...["agent", "bot", "platform"].map((side) => bare(`side-${side}`, { sender: side, recipient: side })),
    ...Object.keys(INSTANTS).map((date_created, at) => bare(`instant-${at}`, { date_created })),
  ];
};

const endUsers = (): BusEvent[] => [
  event("end_user", { ...valuesOf(END_USER_ROWS), profile: { ...valuesOf(PROFILE_ROWS), score: 1 } }),
  event("end_user", { ...nullsOf(END_USER_ROWS), end_user_id: "nulls", profile: nullsOf(PROFILE_ROWS) }),
  event("end_user", { ...requiredOf(END_USER_ROWS), end_user_id: "bare" }),
  event("end_user", { ...requiredOf(END_USER_ROWS), end_user_id: "empty-profile", profile: {} }),
  ...Object.keys(INSTANTS).map((date, at) =>
    event("end_user", { end_user_id: `instant-${at}`, created_at: date, updated_at: date }),
  ),
];

const names = (rows: readonly FieldRow[]): string[] => rows.map(([name]) => name);

let system: RunningSystem;
let key = "";
let sentAt = 0;
let byId: { conversations: Map<unknown, Item>; messages: Map<unknown, Item>; endUsers: Map<unknown, Item> };

const conversation = (id: string): Item => byId.conversations.get(id) ?? {};
const message = (id: string): Item => byId.messages.get(id) ?? {};
const endUser = (id: string): Item => byId.endUsers.get(id) ?? {};
const handoffsOf = (id: string): Item[] => conversation(id)["handoffs"] as Item[];

beforeAll(async () => {
  system = await joinSystem();
  sentAt = Date.now();
  await createDelivery(system).send([...conversations(), ...messages(), ...endUsers()]);
  key = await system.key(CLIENT, ["export", "end_users"]);
  await ingestAll(system);
  const records = async (path: string, id: string): Promise<Map<unknown, Item>> => {
    const answer = await read(`${system.apiUrl}${path}`, key);
    return new Map(answer.records.map((record) => [record[id], record]));
  };
  const window = `created_since=${WHOLE.since}&created_to=${WHOLE.to}`;
  byId = {
    conversations: await records(`/v2/export/conversations?${window}`, "_id"),
    messages: await records(`/v2/export/messages?${window}`, "_id"),
    endUsers: await records("/v2/end-users/", "end_user_id"),
  };
});
afterAll(() => system?.stop());

const expectRow = ([name, value, empty]: FieldRow, [full, nulls, bare]: readonly Item[]): void => {
  expect(full).toHaveProperty([name], value);
  if (empty === undefined) return;
  expect(nulls).toHaveProperty([name], empty);
  expect(bare).toHaveProperty([name], empty);
};

describe("2.1 Conversation", () => {
  it.each(CONVERSATION_ROWS)("conversation field %s", (...row) => {
    expectRow(row, [conversation("full"), conversation("nulls"), conversation("bare")]);
  });

  it("conversation field record_last_updated", () => {
    const text = String(conversation("bare")["record_last_updated"]);
    expect(text).toMatch(DATE_FORM);
    expect(Date.parse(text)).toBeGreaterThanOrEqual(sentAt - 1_000);
    expect(Date.parse(text)).toBeLessThanOrEqual(Date.now() + 1_000);
  });

  it("a conversation has exactly the fields of the table, in its order", () => {
    const wanted = names(CONVERSATION_ROWS);
    wanted.splice(wanted.indexOf("used_coaching"), 0, "record_last_updated");
    expect(wanted).toHaveLength(40);
    for (const id of ["full", "nulls", "bare"]) expect(Object.keys(conversation(id))).toEqual(wanted);
  });

  it("agent_name has a place for each agent_id, in the same order", () => {
    expect(conversation("full")["agent_name"]).toHaveLength(
      (conversation("full")["agent_id"] as unknown[]).length,
    );
    expect(conversation("agents")).toMatchObject({
      agent_id: ["a-1", "a-2", "a-3"],
      agent_name: ["Ida", null, "Ida"],
    });
  });

  it.each(CLASSIFICATIONS)("automated_resolution_classification %s leaves as it is", (text) => {
    expect(conversation(text)["automated_resolution_classification"]).toBe(text);
  });

  it("values outside a documented set leave as they came", () => {
    const {
      handoffs: [handoff],
      classifications,
      ...rest
    } = OUTSIDE.conversation;
    expect(conversation("outside")).toMatchObject(rest);
    expect(conversation("outside")["classifications"]).toMatchObject(classifications);
    expect(handoffsOf("outside")).toMatchObject([
      { reason_code: handoff?.["reason_code"], outcome_status: handoff?.["outcome_status"] },
    ]);
    for (const [at, fields] of OUTSIDE.messages.entries()) {
      for (const [name, value] of Object.entries(fields)) {
        expect(message(`outside-${at}`)).toHaveProperty([name], value);
      }
    }
  });

  it("last agent is null when there was none, a change set has its id", () => {
    expect(conversation("no-agent")).toMatchObject({
      last_agent_id: null,
      last_agent_name: null,
      changeset_id: "change-7",
    });
  });

  it.each(
    Object.entries(ITEM_ROWS).flatMap(([list, rows]) => rows.map(([name]) => [list, name] as const)),
  )("item field %s.%s", (list, name) => {
    const row = (ITEM_ROWS[list] ?? []).find(([one]) => one === name);
    const items = conversation("items")[list] as Item[];
    expect(items).toHaveLength(3);
    expectRow(row ?? ["", "", ""], items);
  });

  it.each(INTENT_ROWS)("intent field %s", (...row) => {
    const [item] = conversation("intents")["classifications"] as { intents: Item[] }[];
    expect(item?.intents).toHaveLength(3);
    expectRow(row, item?.intents ?? []);
  });

  it.each(Object.keys(ITEM_ROWS))("items of %s have exactly the fields of their table", (list) => {
    for (const item of conversation("items")[list] as Item[]) {
      expect(Object.keys(item)).toEqual(names(ITEM_ROWS[list] ?? []));
    }
    const [item] = conversation("intents")["classifications"] as { intents: Item[] }[];
    for (const intent of item?.intents ?? []) expect(Object.keys(intent)).toEqual(names(INTENT_ROWS));
  });

  it.each(REASON_CODES)("reason code %s leaves as it is", (reason) => {
    const found = handoffsOf("reasons").filter(({ handoff_id }) => handoff_id === reason);
    expect(found.map(({ reason_code }) => reason_code)).toEqual([reason]);
  });

  it("reason code null is not unclassified", () => {
    const found = handoffsOf("reasons").filter(({ handoff_id }) => handoff_id === null);
    expect(found.map(({ reason_code }) => reason_code)).toEqual([null]);
  });

  it("handoffs rule 1: the latest attempt of each target, in the order of time", () => {
    expect(handoffsOf("rule-1").map(({ id }) => id)).toEqual(["between", "late"]);
  });

  it("handoffs rules 2 and 3: escalation and entries do not follow from each other", () => {
    expect(conversation("rule-2")).toMatchObject({ is_escalated: false, handoffs: [{ id: "attempt" }] });
    expect(conversation("rule-3")).toMatchObject({ is_escalated: true, handoffs: [] });
  });

  it("handoffs rule 4: a later export with fewer entries, none, or no list takes none away", () => {
    expect(conversation("rule-4")["browser"]).toBe("last");
    expect(conversation("rule-4-absent")["browser"]).toBe("later");
    expect(handoffsOf("rule-4-absent").map(({ id }) => id)).toEqual(["attempt"]);
    expect(handoffsOf("rule-4").map(({ id, reasoning }) => [id, reasoning])).toEqual([
      ["attempt", "later"],
      ["other", null],
    ]);
  });

  it("handoffs rule 5: matched by handoff_id, else by id; the later date, then the later export", () => {
    expect(handoffsOf("rule-5").map(({ id, reasoning }) => [id, reasoning])).toEqual([
      ["a", "first export"],
      ["f", "equal date"],
      ["d", "first export"],
      ["c", "later date"],
    ]);
  });
});

describe("2.1 Conversation, one attempt with and without handoff_id", () => {
  const reported = (id: string): unknown[] => handoffsOf(id).map((one) => [one["handoff_id"], one["id"]]);

  it("handoffs rule 5: an attempt without handoff_id is matched by id, and stands once", () => {
    expect(reported("named-later")).toEqual([["h-1", "attempt"]]);
    expect(handoffsOf("named-later")[0]?.["reasoning"]).toBe("second export");
    expect(reported("unnamed-later")).toEqual([[null, "attempt"]]);
  });

  it("handoffs rule 5: an attempt that got its handoff_id stays superseded by the next of its target", () => {
    expect(reported("repeated")).toEqual([["h-1", "second"]]);
  });
});

describe("2. Dates", () => {
  it.each(
    Object.entries(INSTANTS).map(([sent, leaves], at) => [sent, leaves, at] as const),
  )("date %s leaves in one form, with microseconds and offset", (_sent, leaves, at) => {
    expect(conversation(`instant-${at}`)).toMatchObject({
      date_created: leaves,
      date_updated: leaves,
      handoffs: [{ date_created: leaves }],
    });
    expect(message(`instant-${at}`)["date_created"]).toBe(leaves);
    expect(endUser(`instant-${at}`)).toMatchObject({ created_at: leaves, updated_at: leaves });
    for (const record of [conversation(`instant-${at}`), message(`instant-${at}`)]) {
      expect(record["record_last_updated"]).toMatch(DATE_FORM);
    }
  });
});

describe("2. Identifiers", () => {
  const identifiersOf = (value: unknown): unknown[] => {
    if (Array.isArray(value)) return value.flatMap(identifiersOf);
    if (typeof value !== "object" || value === null) return [];
    return Object.entries(value).flatMap(([name, one]) => {
      if (FREE_FORM.has(name)) return [];
      return /(^|_)id$/.test(name) || name === "in_response_to" ? [one].flat() : identifiersOf(one);
    });
  };
  const FREE_FORM = new Set(["csat", "metavariables", "variables", "message_data", "metadata"]);

  it("every identifier leaves as text, and a number in its place is refused", () => {
    const found = [
      identifiersOf(conversation("full")),
      Object.values(conversation("items")).flatMap((list) =>
        identifiersOf(Array.isArray(list) ? list[0] : null),
      ),
      identifiersOf(message("full")),
      identifiersOf(endUser("full")),
    ];
    expect(found.map(({ length }) => length)).toEqual([10, 11, 5, 2]);
    for (const one of found.flat()) expect(one).toEqual(expect.any(String));
    expect(byId.conversations.has("numeric")).toBe(false);
    expect(byId.messages.has("numeric")).toBe(false);
  });
});

describe("1. Messages and conversations", () => {
  it("every message names its conversation by its _id; one that names none is refused", () => {
    expect(byId.messages.size).toBeGreaterThan(20);
    for (const { conversation_id } of byId.messages.values()) {
      expect(byId.conversations.get(conversation_id)).toMatchObject({ _id: conversation_id });
    }
    expect(byId.messages.has("orphan")).toBe(false);
  });
});

describe("2.2 Message", () => {
  it.each(MESSAGE_ROWS)("message field %s", (...row) => {
    expectRow(row, [message("full"), message("nulls"), message("bare")]);
  });

  it("message field record_last_updated", () => {
    const text = String(message("bare")["record_last_updated"]);
    expect(text).toMatch(DATE_FORM);
    expect(Date.parse(text)).toBeGreaterThanOrEqual(sentAt - 1_000);
    expect(Date.parse(text)).toBeLessThanOrEqual(Date.now() + 1_000);
  });

  it("a message has exactly the fields of the table, in its order", () => {
    const wanted = names(MESSAGE_ROWS);
    wanted.splice(wanted.indexOf("review"), 0, "record_last_updated");
    for (const id of ["full", "nulls", "bare"]) expect(Object.keys(message(id))).toEqual(wanted);
  });

  it.each([0, 1, 2, 3, 4, 5])("review %d leaves as an integer", (review) => {
    expect(message(`review-${review}`)["review"]).toBe(review);
  });

  it("a review that is no integer is refused", () => {
    expect(byId.messages.has("review-part")).toBe(false);
  });

  it("answer_id and in_response_to may be the text None", () => {
    expect(message("none")).toMatchObject({ answer_id: "None", answer_title: null, in_response_to: "None" });
  });

  it.each(["agent", "bot", "platform"])("sender and recipient may be the word %s", (side) => {
    expect(message(`side-${side}`)).toMatchObject({ sender: side, recipient: side });
  });
});

describe("2.3 message_data", () => {
  it.each(Object.keys(MESSAGE_SHAPES))("message_data of type %s leaves as it came", (_type) => {
    expect(message(`shape-${_type}`)["message_data"]).toEqual({ _type, ...MESSAGE_SHAPES[_type] });
  });
});

describe("2.4 Page envelopes", () => {
  const window = `created_since=${WHOLE.since}&created_to=${WHOLE.to}`;

  it.each(["conversations", "messages"])("the envelope of %s in version 2 is data and meta", async (list) => {
    const { body } = await read(`${system.apiUrl}/v2/export/${list}?${window}`, key);
    expect(body).toEqual({ data: expect.any(Array) as unknown[], meta: { next_page_uri: null } });
    expect((body as { data: unknown[] }).data.length).toBeGreaterThan(10);
  });

  it.each(LEGACY_PATHS)("the envelope of %s is data, message and next_page_uri", async (path) => {
    const { body } = await read(`${new URL(system.apiUrl).origin}${path}?${window}`, key);
    expect(body).toEqual({ data: expect.any(Array) as unknown[], message: "OK", next_page_uri: null });
    expect((body as { data: unknown[] }).data.length).toBeGreaterThan(10);
  });
});

describe("2.5 End user", () => {
  const rows = END_USER_ROWS.filter(([name]) => name !== "profile");

  it.each(rows)("end user field %s", (...row) => {
    expectRow(row, [endUser("full"), endUser("nulls"), endUser("bare")]);
  });

  it("end user field profile", () => {
    expect(endUser("bare")["profile"]).toEqual({});
  });

  it.each(PROFILE_ROWS)("profile field %s", (...row) => {
    const profiles = ["full", "nulls", "empty-profile"].map((id) => endUser(id)["profile"] as Item);
    expectRow(row, profiles);
  });

  it("an end user and the profile have exactly the fields of the table, in its order", () => {
    for (const id of ["full", "nulls", "bare"])
      expect(Object.keys(endUser(id))).toEqual(names(END_USER_ROWS));
    expect(Object.keys(endUser("full")["profile"] as Item)).toEqual(names(PROFILE_ROWS));
  });
});
