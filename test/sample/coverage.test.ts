import { beforeAll, describe, expect, test } from "vitest";
import { CONVERSATION, END_USER, HANDOFF, MESSAGE } from "../reference/fields.ts";
import { readInstant } from "../reference/instant.ts";
import { type Decoded, decodeAll } from "./values/decode.ts";
import type { BusEvent, RecordKind } from "./event.ts";
import { NONSTANDARD_NUMBERS } from "./values/free-form.ts";
import { REASON_CODES } from "./handoffs.ts";
import { SUFFIXES } from "./values/instants.ts";
import { createSample } from "./sample.ts";

type Fields = Readonly<Record<string, unknown>>;

let events: BusEvent[] = [];
let decoded: Decoded[] = [];
let text = "";

beforeAll(() => {
  events = [...createSample({ seed: "coverage", conversations: 2_000 })];
  decoded = decodeAll(events);
  text = decoded.map((one) => one.text).join("\n");
});

function dataOf(kind: RecordKind): Fields[] {
  return decoded.filter((one) => one.event.kind === kind).map((one) => one.data);
}

function listOf(field: string): Fields[] {
  return dataOf("conversation").flatMap((data) => (data[field] as Fields[] | null | undefined) ?? []);
}

function missingFrom(objects: readonly Fields[], names: readonly string[]): string[] {
  return names.filter((name) => !objects.some((one) => one[name] !== undefined && one[name] !== null));
}

describe("fields", () => {
  test.each([
    ["conversation", CONVERSATION],
    ["message", MESSAGE],
    ["end_user", END_USER],
  ] as const)("every field of a %s occurs, and is null or absent where it may be", (kind, fields) => {
    const names = fields.map(([name]) => name);
    const objects = dataOf(kind);
    expect(missingFrom(objects, names)).toEqual([]);
    for (const [name, fieldKind] of fields) {
      const isRequired = fieldKind === "id" || fieldKind === "created";
      expect([name, objects.some((one) => !(name in one))]).toEqual([name, !isRequired]);
      expect([name, objects.some((one) => one[name] === null)]).toEqual([name, !isRequired]);
    }
    expect(objects.some((one) => "sentiment" in one)).toBe(true);
  });

  test("lists occur empty and filled, with all fields of their items", () => {
    const lists = [
      "agent_id",
      "classifications",
      "used_coaching",
      "used_articles",
      "used_playbooks",
      "used_mcp",
      "handoffs",
    ];
    for (const name of lists) {
      const sizes = new Set(
        dataOf("conversation").map((data) => (data[name] as unknown[] | undefined)?.length),
      );
      expect([name, sizes.has(0), sizes.has(1)]).toEqual([name, true, true]);
    }
    const items: Record<string, string[]> = {
      classifications: ["topic_id", "topic_name", "intents"],
      used_coaching: ["id", "entity_name", "coaching_type", "coaching_instructions", "coaching_intent"],
      used_articles: ["id", "name", "url", "source"],
      used_playbooks: ["id", "name", "playbook_execution_id", "outcome_status"],
      used_mcp: ["id", "tool_id", "connection_id", "connection_name", "tool_name", "outcome_status"],
      handoffs: HANDOFF.map(([name]) => name),
    };
    for (const [name, fields] of Object.entries(items))
      expect([name, missingFrom(listOf(name), fields)]).toEqual([name, []]);
    const intents = listOf("classifications").map((item) => (item["intents"] as Fields[] | undefined) ?? []);
    expect(intents.some((list) => list.length === 0)).toBe(true);
    expect(missingFrom(intents.flat(), ["intent_id", "intent_name", "status"])).toEqual([]);
    expect(listOf("used_mcp").some((item) => item["tool_id"] === null)).toBe(true);
    expect(listOf("used_mcp").some((item) => !("tool_id" in item))).toBe(true);
    expect(listOf("classifications").some((item) => !("intents" in item))).toBe(true);
  });

  test("items and profiles with fields that nobody named occur", () => {
    const intents = listOf("classifications").flatMap(
      (item) => (item["intents"] as Fields[] | undefined) ?? [],
    );
    const profiles = dataOf("end_user").map((data) => (data["profile"] as Fields | null | undefined) ?? {});
    expect(missingFrom(listOf("classifications"), ["topic_score"])).toEqual([]);
    expect(missingFrom(intents, ["confidence"])).toEqual([]);
    expect(missingFrom(listOf("used_mcp"), ["latency_ms"])).toEqual([]);
    expect(missingFrom(profiles, ["pronouns"])).toEqual([]);
  });

  test("csat and profiles have all their keys", () => {
    const csat = dataOf("conversation").map((data) => (data["csat"] as Fields | null | undefined) ?? {});
    const keys = ["comment", "feedback", "is_positive", "resolved", "score", "style", "survey_type"];
    expect(missingFrom(csat, [...keys, "customer_effort_score", "ces_max", "net_promoter_score"])).toEqual(
      [],
    );
    const profiles = dataOf("end_user").map((data) => (data["profile"] as Fields | undefined) ?? {});
    const names = ["first_name", "last_name", "display_name", "avatar", "email", "language", "metadata"];
    expect(missingFrom(profiles, [...names, "system_properties"])).toEqual([]);
  });

  test("values outside the named sets occur", () => {
    const reviews = dataOf("message").map((data) => data["review"]);
    for (const review of [0, 1, 2, 3, 4, 5, 9, -1]) expect(reviews).toContain(review);
    expect(listOf("handoffs").map((item) => item["reason_code"])).toContain("queue_closed");
    expect(dataOf("conversation").map((data) => data["automated_resolution_classification"])).toContain(
      "Partly Resolved",
    );
    expect(dataOf("message").map((data) => data["answer_id"])).toContain("None");
    expect(dataOf("message").map((data) => data["in_response_to"])).toContain("None");
  });
});

describe("message_data", () => {
  const reviewable = "reviewable_message";
  const shapes: Record<string, string[]> = {
    greeting: ["external_chat_id", reviewable],
    text: ["body", "has_variables", reviewable, "has_forced_quick_replies"],
    picture: ["alt_text", "has_variables", "pic_url", reviewable],
    quick_replies: ["has_variables", "is_forced", "quick_replies", reviewable],
    trigger: ["body", "button_type", "external_chat_id", reviewable],
    meta: ["meta_message_type", "meta_message_data"],
    link: [
      "alt_text",
      "generate_link_preview",
      "has_variables",
      "is_handoff",
      "link_description",
      "link_icon",
      "link_text",
      "new_window",
      "raw_url",
      reviewable,
      "title",
      "url",
    ],
    web_window: [
      "has_forced_quick_replies",
      "has_variables",
      "is_handoff",
      "locked",
      "raw_url",
      reviewable,
      "window_button_label",
      "window_height",
      "window_title",
      "window_url",
      "window_width",
    ],
    csat_shown: ["survey_type"],
    csat: ["is_positive", "score", "style", "survey_type"],
  };

  test.each(Object.entries(shapes))("%s occurs with all its fields", (shape, names) => {
    const contents = dataOf("message").map(
      (data) => (data["message_data"] as Fields | null | undefined) ?? {},
    );
    const own = contents.filter((content) => content["_type"] === shape);
    expect(own.length).toBeGreaterThan(0);
    expect(missingFrom(own, names)).toEqual([]);
  });

  test("an unknown shape, an empty one and none at all occur", () => {
    const contents = dataOf("message").map((data) => data["message_data"] as Fields | null | undefined);
    expect(contents.some((content) => content?.["_type"] === "carousel")).toBe(true);
    expect(contents.some((content) => content != null && Object.keys(content).length === 0)).toBe(true);
    expect(contents).toContain(null);
    expect(contents).toContain(undefined);
  });
});

describe("timestamps", () => {
  const FORM = /^\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(?:\.(\d+))?(|Z|[+-]\d\d(?::\d\d)?)$/;

  test.each([
    ["time", () => decoded.map((one) => one.attributes["time"])],
    ["date_created", () => decoded.map((one) => one.data["date_created"] ?? one.data["created_at"])],
    ["date_updated", () => dataOf("conversation").flatMap((data) => data["date_updated"] ?? [])],
    ["handoffs.date_created", () => listOf("handoffs").map((item) => item["date_created"])],
  ] as const)("%s occurs in every form", (_name, read) => {
    const forms = read().map((one) => FORM.exec(String(one)));
    expect(forms).not.toContain(null);
    expect(new Set(forms.map((form) => form?.[1]))).toEqual(new Set(["T", " "]));
    const digits = new Set(forms.map((form) => form?.[2]?.length ?? 0));
    expect(digits).toEqual(new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    expect(new Set(forms.map((form) => form?.[3]))).toEqual(new Set(SUFFIXES.map(([suffix]) => suffix)));
  });
});

describe("handoffs", () => {
  type Attempt = { key: string; at: bigint; outcome: unknown };
  type Exported = { version: bigint; attempts: Attempt[]; latest: Map<string, Attempt> };
  let conversations: Exported[][];

  beforeAll(() => {
    const exportsOf = new Map<string, Exported[]>();
    for (const { event, data, attributes } of decoded) {
      if (event.kind !== "conversation" || !Array.isArray(data["handoffs"])) continue;
      const attempts = (data["handoffs"] as Fields[]).map((item) => ({
        key: JSON.stringify([item["handoff_id"] ?? null, item["handoff_id"] == null ? item["id"] : ""]),
        at: readInstant(String(item["date_created"])) ?? -1n,
        outcome: item["outcome_status"] ?? null,
      }));
      const byDate = attempts.toSorted((a, b) => Number(a.at - b.at));
      const latest = new Map(byDate.map((attempt) => [attempt.key, attempt]));
      const version = readInstant(String(attributes["time"])) ?? -1n;
      exportsOf.set(event.key, [...(exportsOf.get(event.key) ?? []), { version, attempts, latest }]);
    }
    conversations = [...exportsOf.values()];
  });

  const someTarget = (holds: (earlier: Attempt, later: Attempt | undefined) => boolean): boolean =>
    conversations.some((exports) =>
      exports.some((a) =>
        exports.some(
          (b) => a.version < b.version && [...a.latest].some(([key, one]) => holds(one, b.latest.get(key))),
        ),
      ),
    );

  test("a later export has a later attempt, an earlier one, another outcome at one instant, or none", () => {
    expect(someTarget((earlier, later) => later !== undefined && later.at > earlier.at)).toBe(true);
    expect(someTarget((earlier, later) => later !== undefined && later.at < earlier.at)).toBe(true);
    expect(
      someTarget((earlier, later) => later?.at === earlier.at && later.outcome !== earlier.outcome),
    ).toBe(true);
    expect(someTarget((_earlier, later) => later === undefined)).toBe(true);
  });

  test("one export has two entries for a target, of one instant and of two, and is not always in order", () => {
    const pairs = conversations.flat().flatMap(({ attempts }) => {
      return attempts.flatMap((a, at) => attempts.slice(at + 1).map((b) => [a, b] as const));
    });
    expect(pairs.some(([a, b]) => a.key === b.key && a.at === b.at && a.outcome !== b.outcome)).toBe(true);
    expect(pairs.some(([a, b]) => a.key === b.key && a.at !== b.at)).toBe(true);
    expect(pairs.some(([a, b]) => a.key !== b.key && a.at === b.at)).toBe(true);
    expect(pairs.some(([a, b]) => a.at > b.at)).toBe(true);
  });

  test("all targets, reasons and gaps occur", () => {
    const items = listOf("handoffs");
    const reasons = new Set(items.map((item) => item["reason_code"]));
    for (const reason of [...REASON_CODES, null]) expect(reasons).toContain(reason);
    expect(items.some((item) => String(item["handoff_id"]).startsWith("generated_"))).toBe(true);
    expect(items.some((item) => item["handoff_id"] === null)).toBe(true);
    for (const [name, kind] of HANDOFF) {
      if (kind === "text") expect([name, items.some((item) => !(name in item))]).toEqual([name, true]);
    }
    const ids = new Set(items.map((item) => item["handoff_id"]));
    expect(items.some((item) => item["handoff_id"] === null && ids.has(item["id"]))).toBe(true);
  });
});

describe("bytes", () => {
  test("all nonstandard number forms are in the text", () => {
    for (const number of NONSTANDARD_NUMBERS)
      expect(text).toMatch(new RegExp(`[:,[]${number.replace(/[.+]/g, "\\$&")}[,}\\]]`));
    expect(text).toMatch(/"agent_handle_time":(?:312\.0|1\.5e3|0\.50|1E2)/);
  });

  test("integer-like keys out of order, strange keys and several spellings are in the text", () => {
    const wanted = [
      '{"10":"ten","2":"two"',
      '"__proto__":',
      '{"":',
      "caf\\u00e9 \\/",
      "\\ud800",
      '{"\\u0032":',
      '"None"',
    ];
    for (const part of wanted) expect(text).toContain(part);
    expect(text).toMatch(/[{,]"(\d\d)":[^{}]*?,"(?!\1)[1-9]":/);
  });

  test("texts are unicode, quoted, broken into lines, and sometimes long", () => {
    const bodies = dataOf("message").map((data) =>
      String((data["message_data"] as Fields | null | undefined)?.["body"]),
    );
    for (const part of [
      "😀",
      '"',
      "\\",
      "\n",
      "\r\n",
      "\t",
      "\u2028",
      "\u0001",
      "مرحبا",
      "हिन्दी",
      '{"data":',
    ]) {
      expect([part, bodies.some((body) => body.includes(part))]).toEqual([part, true]);
    }
    expect(bodies.some((body) => body.length > 3_000)).toBe(true);
    const languages = new Set(dataOf("conversation").map((data) => data["language"]));
    for (const language of ["en", "de", "fr", "es", "pt-BR", "ja"]) expect(languages).toContain(language);
  });

  test("conversations weigh about 2 kB, messages about 600 bytes", () => {
    const mean = (kind: RecordKind): number => {
      const sizes = decoded
        .filter((one) => one.event.kind === kind)
        .map((one) => one.event.value?.length ?? 0);
      return sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
    };
    expect(mean("conversation")).toBeGreaterThan(1_500);
    expect(mean("conversation")).toBeLessThan(2_500);
    expect(mean("message")).toBeGreaterThan(400);
    expect(mean("message")).toBeLessThan(750);
  });
});

describe("the bus", () => {
  test("both modes occur, with and without content type, subject and extensions", () => {
    const modes = decoded.map((one) => [one.mode, one.event.headers["content-type"]].join(" "));
    expect(new Set(modes)).toEqual(
      new Set([
        "binary application/json",
        "structured ",
        "structured application/cloudevents+json",
        "structured application/cloudevents+json; charset=utf-8",
      ]),
    );
    for (const mode of ["structured", "binary"]) {
      const own = decoded.filter((one) => one.mode === mode);
      expect(own.some((one) => one.attributes["subject"] === undefined)).toBe(true);
      expect(own.some((one) => one.attributes["traceparent"] !== undefined)).toBe(true);
    }
    expect(decoded.some((one) => one.mode === "structured" && one.text.startsWith("{\r\n"))).toBe(true);
  });

  test("exports come again, late, out of order, twice, and at one instant with different content", () => {
    const byKey = Map.groupBy(decoded, (one) => `${one.event.kind} ${one.event.key}`);
    const runs = [...byKey.values()].map((list) =>
      list.map((one) => ({ time: readInstant(String(one.attributes["time"])) ?? -1n, text: one.text })),
    );
    const somePair = (
      holds: (a: { time: bigint; text: string }, b: { time: bigint; text: string }) => boolean,
    ): boolean =>
      runs.some((run) => run.some((b, at) => at > 0 && run.slice(0, at).some((a) => holds(a, b))));
    expect(somePair((a, b) => b.time - a.time > 86_400_000_000n)).toBe(true);
    expect(somePair((a, b) => b.time < a.time)).toBe(true);
    expect(somePair((a, b) => b.time === a.time && b.text === a.text)).toBe(true);
    expect(somePair((a, b) => b.time === a.time && b.text !== a.text)).toBe(true);
    const messages = runs.filter((_, at) => [...byKey.keys()][at]?.startsWith("message"));
    expect(messages.some((run) => run.some((b) => b.text !== run[0]?.text))).toBe(true);
  });

  test("ties, ids of two clients, and ids whose order depends on the encoding occur", () => {
    const groups = Map.groupBy(
      decoded.filter((one) => one.event.kind === "conversation"),
      (one) => `${String(one.attributes["clientid"])} ${readInstant(String(one.data["date_created"]))}`,
    );
    const ties = [...groups.values()].map((group) => new Set(group.map((one) => String(one.data["_id"]))));
    expect(ties.filter((ids) => ids.size >= 6).length).toBeGreaterThan(5);
    const owners = Map.groupBy(
      decoded.filter((one) => one.event.kind === "conversation"),
      (one) => String(one.data["_id"]),
    );
    const clients = [...owners.values()].map(
      (group) => new Set(group.map((one) => one.attributes["clientid"])),
    );
    expect(clients.some((own) => own.size === 2)).toBe(true);
    const ids = [...owners.keys()];
    expect(ids.some((id) => id.startsWith("😀")) && ids.some((id) => id.startsWith("\uff5a"))).toBe(true);
  });

  test("null values and poison stand between the others", () => {
    expect(events.filter((event) => event.value === null).length).toBeGreaterThan(0);
    expect(events.filter((event) => event.poison).length).toBeGreaterThan(40);
    expect(new Set(events.map((event) => event.key.split("/")[0]))).toEqual(
      new Set(["acme", "globex", "initech"]),
    );
  });
});
