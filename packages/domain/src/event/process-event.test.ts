import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dataSubjectRequestSchema } from "../contract/data-subject-request.ts";
import type { ExportRecord } from "../kinds/export-record.ts";
import type { EventType } from "../kinds/record-kinds.ts";
import type { BusHeader } from "./headers.ts";
import type { RejectionReason } from "./outcome.ts";
import { type Accepted, processEvent } from "./process-event.ts";

const STAMP = "2026-11-01T00:00:00.000000+00:00";
const position = { partition: 3, offset: 14 };

const conversationData = { _id: "c", date_created: "2026-10-04T00:00:00Z" };
const messageData = { _id: "m", conversation_id: "c", date_created: "2026-10-04T00:00:00Z" };
const endUserData = { end_user_id: "u", created_at: "2026-10-04T00:00:00Z" };

function attributesOf(type: EventType): Record<string, unknown> {
  return {
    specversion: "1.0",
    id: "e",
    source: "s",
    type,
    time: "2026-10-05T00:00:00.123456Z",
    clientid: "acme",
  };
}

function structured(type: EventType, data: unknown, attributes: Record<string, unknown> = {}) {
  const text = JSON.stringify({ ...attributesOf(type), data, ...attributes });
  return processEvent({ text, headers: { "content-type": "application/cloudevents+json" }, position }, type);
}

function headersOf(type: EventType): Record<string, BusHeader> {
  return Object.fromEntries(
    Object.entries(attributesOf(type)).map(([name, value]) => [`ce_${name}`, Buffer.from(String(value))]),
  );
}

function binary(type: EventType, data: unknown, headers: Record<string, BusHeader> = {}) {
  const text = JSON.stringify(data);
  return processEvent({ text, headers: { ...headersOf(type), ...headers }, position }, type);
}

function exact(type: EventType, data: string, mode: "structured" | "binary" = "structured") {
  if (mode === "structured") {
    const text = `${JSON.stringify(attributesOf(type)).slice(0, -1)} , "data" : ${data} }`;
    return processEvent({ text, headers: {}, position }, type);
  }
  const headers = { ...headersOf(type), "content-type": "application/json" };
  return processEvent({ text: data, headers, position }, type);
}

function accepted(outcome: ReturnType<typeof processEvent>): Accepted {
  if (outcome.kind !== "accepted") throw new Error(JSON.stringify(outcome));
  return outcome;
}

function textOf(record: ExportRecord): string {
  if (record.afterUpload === null) return record.beforeUpload;
  const text = record.beforeUpload + STAMP + record.afterUpload;
  if (record.type === "message.exported") return text;
  return `${text}[${record.handoffs.map(({ entry }) => entry).join(",")}]${record.tail}`;
}

function rendered(outcome: ReturnType<typeof processEvent>): string {
  return textOf(accepted(outcome).record);
}

const CONVERSATION_FIELDS =
  "_id agent_id agent_name agent_handle_time bot_handle_time automated_resolution_classification automated_resolution_classification_reason browser browser_version changeset_id chatter_id classifications csat date_created date_updated device end_user_id generated_topic_id generated_topic_label generated_topic_v2_id generated_topic_v2_title generated_topic_v2_desc generated_topic_v2_parent_id inquiry_summary is_engaged is_escalated is_test_user language last_agent_id last_agent_name metavariables oauth_channel platform record_last_updated used_coaching used_articles handoffs used_playbooks used_mcp variables";
const MESSAGE_FIELDS =
  "_id answer_id answer_title chatter_id conversation_id date_created link_was_clicked message_data recipient record_last_updated review sender in_response_to";

describe("an accepted record", () => {
  it("has all fields of a conversation in the order of the specification, empty where nothing came", () => {
    const record = JSON.parse(rendered(structured("conversation.exported", conversationData))) as Record<
      string,
      unknown
    >;
    expect(Object.keys(record).join(" ")).toBe(CONVERSATION_FIELDS);
    const { _id, date_created, date_updated, record_last_updated, ...others } = record;
    expect([_id, date_created, date_updated, record_last_updated]).toEqual([
      "c",
      "2026-10-04T00:00:00.000000+00:00",
      "2026-10-04T00:00:00.000000+00:00",
      STAMP,
    ]);
    const lists = ["agent_id", "agent_name", "classifications", "used_coaching", "used_articles"];
    lists.push("handoffs", "used_playbooks", "used_mcp");
    const objects = ["metavariables", "variables"];
    for (const [name, value] of Object.entries(others)) {
      const expected = lists.includes(name) ? [] : objects.includes(name) ? {} : null;
      expect(value, name).toEqual(expected);
    }
  });

  it("has all fields of a message in the order of the specification, empty where nothing came", () => {
    const record = JSON.parse(rendered(structured("message.exported", messageData))) as Record<
      string,
      unknown
    >;
    expect(Object.keys(record).join(" ")).toBe(MESSAGE_FIELDS);
    expect(record).toMatchObject({ answer_id: null, message_data: null, review: null, in_response_to: null });
  });

  it("has all fields of an item, in the order of the specification, and no other", () => {
    const given = {
      ...conversationData,
      classifications: [
        { zzz: 1, intents: [{ status: "active", zzz: 1, intent_id: "i" }, {}], topic_id: "t" },
        { intents: null },
      ],
      used_coaching: [{ coaching_intent: "c", id: null }],
      used_articles: [{ url: "u", id: "a", zzz: {} }],
      used_playbooks: [{ outcome_status: "o" }],
      used_mcp: [{ tool_name: "n", zzz: "x" }, {}],
    };
    const wanted = [
      '"classifications":[{"topic_id":"t","topic_name":null,"intents":[{"intent_id":"i","intent_name":null,"status":"active"},{"intent_id":null,"intent_name":null,"status":null}]},{"topic_id":null,"topic_name":null,"intents":[]}],',
      '"used_coaching":[{"id":null,"entity_name":null,"coaching_type":null,"coaching_instructions":null,"coaching_intent":"c"}],',
      '"used_articles":[{"id":"a","name":null,"url":"u","source":null}],',
      '"used_playbooks":[{"id":null,"name":null,"playbook_execution_id":null,"outcome_status":"o"}],',
      '"used_mcp":[{"id":null,"tool_id":null,"connection_id":null,"connection_name":null,"tool_name":"n","outcome_status":null},{"id":null,"tool_id":null,"connection_id":null,"connection_name":null,"tool_name":null,"outcome_status":null}],',
    ];
    const quick = accepted(structured("conversation.exported", given));
    // Forces the fallback reader.
    const slow = accepted(
      exact("conversation.exported", JSON.stringify(given, null, " ").replace(/\}$/, ',"zzz":1.0}')),
    );
    for (const outcome of [quick, slow]) {
      for (const member of wanted) expect(textOf(outcome.record)).toContain(member);
    }
    const unknown = [
      "classifications.intents.zzz",
      "classifications.zzz",
      "used_articles.zzz",
      "used_mcp.zzz",
    ];
    expect(quick.unknownFields.toSorted()).toEqual(unknown);
    expect(slow.unknownFields.toSorted()).toEqual([...unknown, "zzz"]);
  });

  it("has all fields of a profile, in the order of the specification, and no other", () => {
    const given = {
      ...endUserData,
      profile: { zzz: 1, system_properties: { z: 1, a: "x" }, email: "e", metadata: null },
    };
    const wanted =
      '"profile":{"first_name":null,"last_name":null,"display_name":null,"avatar":null,"email":"e","language":null,"metadata":{},"system_properties":{"z":1,"a":"x"}},';
    const quick = accepted(structured("end_user.exported", given));
    const slow = accepted(
      exact("end_user.exported", JSON.stringify(given, null, " ").replace(/\}$/, ',"zzz":1.0}')),
    );
    for (const outcome of [quick, slow]) {
      expect(textOf(outcome.record)).toContain(wanted);
      expect(outcome.record).toMatchObject({ columns: ["e", ["1", "x"]] });
    }
    expect(quick.unknownFields).toEqual(["profile.zzz"]);
    expect(slow.unknownFields.toSorted()).toEqual(["profile.zzz", "zzz"]);
  });

  it.each(["structured", "binary"] as const)("keeps all digits of an id of another system, %s", (mode) => {
    const ids =
      '{"a":12345678901234567891,"b":-9007199254740993,"c":1e3,"\\u2028":1e22,"d":9007199254740991}';
    const profile = `{"metadata":{"a":1},"system_properties":${ids}}`;
    const data = `{"end_user_id":"u","created_at":"2026-10-04T00:00:00Z","profile":${profile}}`;
    const { record } = accepted(exact("end_user.exported", data, mode));
    expect(record.columns[1]).toEqual([
      "12345678901234567891",
      "-9007199254740993",
      "1000",
      "1e22",
      "9007199254740991",
    ]);
  });

  it("has an empty profile when none came", () => {
    for (const profile of [undefined, null]) {
      expect(rendered(structured("end_user.exported", { ...endUserData, profile }))).toContain(
        '"profile":{},',
      );
    }
  });

  it("has all fields of an end user", () => {
    expect(rendered(structured("end_user.exported", endUserData))).toBe(
      '{"end_user_id":"u","profile":{},"created_at":"2026-10-04T00:00:00.000000+00:00","updated_at":"2026-10-04T00:00:00.000000+00:00"}',
    );
  });

  it("takes null for absent", () => {
    const nulls = Object.fromEntries(CONVERSATION_FIELDS.split(" ").map((name) => [name, null]));
    const outcome = structured("conversation.exported", { ...nulls, ...conversationData });
    expect(rendered(outcome)).toBe(rendered(structured("conversation.exported", conversationData)));
    const none = Object.fromEntries(MESSAGE_FIELDS.split(" ").map((name) => [name, null]));
    expect(rendered(structured("message.exported", { ...none, ...messageData }))).toBe(
      rendered(structured("message.exported", messageData)),
    );
  });

  it("keeps what it was given", () => {
    const given = {
      ...messageData,
      answer_id: "None",
      answer_title: "",
      link_was_clicked: false,
      message_data: { body: 'é \u2028 😀 " \\ \n', _type: "text", deep: [{ a: null }] },
      review: 0,
      sender: "None",
    };
    const { record_last_updated, ...record } = JSON.parse(rendered(structured("message.exported", given)));
    expect(record_last_updated).toBe(STAMP);
    expect(record).toEqual({
      ...given,
      date_created: "2026-10-04T00:00:00.000000+00:00",
      chatter_id: null,
      recipient: null,
      in_response_to: null,
    });
  });

  it("ignores record_last_updated, counts and drops unknown fields", () => {
    const given = { ...conversationData, record_last_updated: 5, zeta: 1 };
    const handoffs = [{ id: "1", date_created: "2026-10-04T00:00:00Z", extra: 1 }];
    const quick = accepted(structured("conversation.exported", given));
    const slow = accepted(structured("conversation.exported", { ...given, handoffs }));
    expect(quick.unknownFields).toEqual(["zeta"]);
    expect(slow.unknownFields.toSorted()).toEqual(["handoffs.extra", "zeta"]);
    for (const { record } of [quick, slow]) expect(textOf(record)).not.toMatch(/zeta|extra/);
    const message = accepted(structured("message.exported", { ...messageData, record_last_updated: 5 }));
    expect(message.unknownFields).toEqual([]);
  });

  it("carries version and dates in microseconds", () => {
    const { record } = accepted(
      structured("conversation.exported", {
        ...conversationData,
        date_updated: "2026-10-04 02:00:00.0000019+01:00",
      }),
    );
    expect(record).toMatchObject({
      clientId: "acme",
      id: "c",
      version: { exportedAt: 1_791_158_400_123_456, partition: 3, offset: 14 },
      dateCreated: 1_791_072_000_000_000,
      dateUpdated: 1_791_075_600_000_001,
    });
  });

  it("has the fields that were named with escapes, though V8 has just read a similar name", () => {
    const data = String.raw`{"_id":"c","date_created":"2026-10-04T00:00:00Z","cs\u0061t":{"score":4}}`;
    JSON.parse(data.replace("0061t", "").replace("cs", "cs\\"));
    const { record, unknownFields } = accepted(exact("conversation.exported", data, "binary"));
    expect(JSON.parse(textOf(record))).toMatchObject({ csat: { score: 4 } });
    expect(unknownFields).toEqual([]);
  });

  it("counts values outside the named sets, and keeps them", () => {
    const outcome = accepted(
      structured("message.exported", { ...messageData, review: 9, message_data: { _type: "text", body: 5 } }),
    );
    expect(outcome.nonstandard.toSorted()).toEqual(["message_data", "review"]);
    expect(JSON.parse(textOf(outcome.record))).toMatchObject({ review: 9, message_data: { body: 5 } });
    const other = accepted(
      structured("conversation.exported", {
        ...conversationData,
        automated_resolution_classification: "Maybe",
      }),
    );
    expect(other.nonstandard).toEqual(["automated_resolution_classification"]);
    const intents = [{ status: "archived" }, { status: null }, { status: "active" }, { status: "new" }];
    const third = accepted(
      structured("conversation.exported", { ...conversationData, classifications: [{ intents }] }),
    );
    const name = "classifications.intents.status";
    expect(third.nonstandard).toEqual([name, name]);
  });

  it("counts at most 20 names of each", () => {
    const intents = Array.from({ length: 30 }, () => ({ status: "archived", zzz: 1 }));
    const handoffs = Array.from({ length: 30 }, (_, index) => ({
      id: `${index}`,
      date_created: "2026-10-04T00:00:00Z",
      reason_code: "new",
    }));
    for (const more of [{ classifications: [{ intents }] }, { classifications: [{ intents }], handoffs }]) {
      const outcome = accepted(structured("conversation.exported", { ...conversationData, ...more }));
      expect([outcome.nonstandard.length, outcome.unknownFields.length]).toEqual([20, 20]);
    }
    const many = Object.fromEntries(intents.map((_, index) => [`z${index}`, 1]));
    for (const type of ["message.exported", "end_user.exported"] as const) {
      const data = type === "message.exported" ? messageData : endUserData;
      expect(accepted(structured(type, { ...data, ...many })).unknownFields).toHaveLength(20);
    }
  });
});

describe("free-form parts", () => {
  const odd =
    '{"10": 9007199254740993, "2":1.0 ,"a":[1e5,-0,0.10], "b":"\\u0041\\/", "1":{"z":1,"0":12345678901234567890.50}}';
  const compacted =
    '{"10":9007199254740993,"2":1.0,"a":[1e5,-0,0.10],"b":"A/","1":{"z":1,"0":12345678901234567890.50}}';

  it.each(["structured", "binary"] as const)("keep digits, number forms and key order (%s)", (mode) => {
    const data = `{"_id":"c","date_created":"2026-10-04T00:00:00Z","agent_handle_time":1.50,"csat":${odd},"metavariables" : ${odd},"variables":${odd},"used_mcp":[ {"zzz":${odd},"id" : "\\u0041\\ud800" , "t\\u006fol_id":"t"} ]}`;
    const text = rendered(exact("conversation.exported", data, mode));
    for (const member of [
      `"csat":${compacted},`,
      `"metavariables":${compacted},`,
      `"variables":${compacted}}`,
      '"used_mcp":[{"id":"A\ufffd","tool_id":"t","connection_id":null,"connection_name":null,"tool_name":null,"outcome_status":null}],',
      '"agent_handle_time":1.50,',
    ]) {
      expect(text).toContain(member);
    }
    const message = rendered(
      exact(
        "message.exported",
        `{"_id":"m","conversation_id":"c","date_created":"2026-10-04T00:00:00Z","message_data":${odd}}`,
        mode,
      ),
    );
    expect(message).toContain(`"message_data":${compacted},`);
    const user = rendered(
      exact(
        "end_user.exported",
        `{"end_user_id":"u","created_at":"2026-10-04T00:00:00Z","profile":{"system_properties" : ${odd},"avatar":"\\/","metadata":${odd}}}`,
        mode,
      ),
    );
    expect(user).toContain(
      `"avatar":"/","email":null,"language":null,"metadata":${compacted},"system_properties":${compacted}},`,
    );
  });

  it("leave the same whether the slow way was needed or not", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom("", "\n", " "),
        (variables, space) => {
          const data = { ...conversationData, variables, inquiry_summary: JSON.stringify(variables) };
          const quick = rendered(structured("conversation.exported", data));
          // Forces the fallback reader.
          const text = JSON.stringify(data, null, space).replace(/\}$/, ',"unknown":1.0}');
          expect(rendered(exact("conversation.exported", text))).toBe(quick);
        },
      ),
    );
  });
});

describe("text that readers of lines would cut", () => {
  const HOSTILE = [
    "\u0085",
    "\u2028",
    "\u2029",
    "\n",
    "\r",
    "\v",
    "\f",
    "\u001c",
    "\u001d",
    "\u001e",
    "\u0000",
    "\u007f",
    "\ufeff",
    "\r\n",
    '"',
    "\\",
    "\\u2028",
    "\ud800",
    "\udc00",
    "😀",
    "a",
  ];
  const hostile = fc
    .array(fc.constantFrom(...HOSTILE), { minLength: 1, maxLength: 6 })
    .map((parts) => parts.join(""));
  /** Line ends for httpx, readline and splitlines, and what JSON forbids. */
  const CUT = /[^\P{Cc}\u007f]|[\u2028\u2029]/u;
  const ascii = (json: string): string =>
    json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const wellFormed = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value), (_, one: unknown) =>
      typeof one === "string" ? one.toWellFormed() : one,
    ) as unknown;

  it("stands as escapes in keys and values of every field, however the event was printed", () => {
    fc.assert(
      fc.property(hostile, hostile, (text, key) => {
        const id = `i${text.toWellFormed()}`;
        const free = { [key.toWellFormed()]: text, list: [{ [`${key.toWellFormed()}2`]: [text] }] };
        const events = [
          [
            "conversation.exported",
            {
              ...conversationData,
              _id: id,
              agent_id: [text],
              csat: free,
              inquiry_summary: text,
              variables: free,
              classifications: [{ topic_name: text, intents: [{ intent_name: text, status: text }] }],
              handoffs: [
                { id, date_created: "2026-10-04T00:00:00Z", name: text, reason_code: text, reasoning: text },
              ],
              used_mcp: [{ tool_name: text }],
            },
          ],
          [
            "message.exported",
            { ...messageData, _id: id, conversation_id: id, message_data: free, sender: text },
          ],
          [
            "end_user.exported",
            { ...endUserData, end_user_id: id, profile: { first_name: text, metadata: free } },
          ],
        ] as const;
        for (const [type, data] of events) {
          const json = JSON.stringify(data);
          // The escaped key forces the fallback reader.
          const slow = json.replace(/\}$/, ',"\\u0058":1}');
          const [first = "", ...others] = [json, ascii(json), slow, ascii(slow)].flatMap((one) =>
            (["structured", "binary"] as const).map((mode) => rendered(exact(type, one, mode))),
          );
          expect(first).not.toMatch(CUT);
          for (const other of others) expect(other).toBe(first);
          const record = JSON.parse(first) as Record<string, unknown>;
          for (const [name, value] of Object.entries(data)) {
            if (name.startsWith("date_") || name.endsWith("_at")) continue;
            expect(record).toHaveProperty([name]);
            const kept = wellFormed(value);
            if (name === "handoffs" || name === "used_mcp" || name === "profile")
              expect(record[name]).toMatchObject(
                name === "handoffs"
                  ? [{ name: text.toWellFormed(), reasoning: text.toWellFormed() }]
                  : (kept as object),
              );
            else
              expect(record[name]).toEqual(
                name === "classifications"
                  ? [
                      {
                        topic_id: null,
                        topic_name: text.toWellFormed(),
                        intents: [
                          { intent_id: null, intent_name: text.toWellFormed(), status: text.toWellFormed() },
                        ],
                      },
                    ]
                  : kept,
              );
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("numbers that readers refuse", () => {
  const reasonsOf = (type: EventType, data: string) =>
    (["structured", "binary"] as const).flatMap((mode) =>
      // The key forces the fallback reader.
      [data, data.replace(/\}$/, ',"\\u0058":1}')].map((text) => {
        const outcome = exact(type, text, mode);
        return outcome.kind === "rejected" ? `${outcome.reason} ${outcome.detail}` : outcome.kind;
      }),
    );
  const expectTaken = (type: EventType, data: string): void =>
    expect(new Set(reasonsOf(type, data))).toEqual(new Set(["accepted"]));
  const CONVERSATION = '{"_id":"c","date_created":"2026-10-04T00:00:00Z"';
  const MESSAGE = '{"_id":"m","conversation_id":"c","date_created":"2026-10-04T00:00:00Z"';
  const USER = '{"end_user_id":"u","created_at":"2026-10-04T00:00:00Z"';
  const LONG = `1${"0".repeat(309)}`;

  it.each([
    "1e400",
    "-1E+400",
    "1.5e309",
    LONG,
    `-${LONG}.5`,
  ])("are rejected wherever they stand: %s", (number) => {
    for (const [path, type, data] of [
      ["agent_handle_time", "conversation.exported", `${CONVERSATION},"agent_handle_time":${number}}`],
      ["csat", "conversation.exported", `${CONVERSATION},"csat":{"score":${number}}}`],
      ["variables", "conversation.exported", `${CONVERSATION},"variables":{"a":[0,{"b":${number}}]}}`],
      ["metavariables", "conversation.exported", `${CONVERSATION},"metavariables":{"x":${number}}}`],
      ["message_data", "message.exported", `${MESSAGE},"message_data":{"n":[${number}]}}`],
      ["review", "message.exported", `${MESSAGE},"review":${number}}`],
      ["profile.metadata", "end_user.exported", `${USER},"profile":{"metadata":{"n":${number}}}}`],
      [
        "profile.system_properties",
        "end_user.exported",
        `${USER},"profile":{"system_properties":{"n":${number}}}}`,
      ],
    ] as const) {
      for (const reason of reasonsOf(type, data)) expect(reason).toContain(`invalid_record ${path}`);
    }
  });

  it("are the rating beyond 32 bits too", () => {
    for (const number of ["2147483648", "-2147483649", "1e10", "9007199254740993"]) {
      for (const reason of reasonsOf("message.exported", `${MESSAGE},"review":${number}}`))
        expect(reason).toContain("invalid_record review");
    }
    for (const number of ["2147483647", "-2147483648"])
      expectTaken("message.exported", `${MESSAGE},"review":${number}}`);
  });

  it("are none that a double holds, or that are dropped", () => {
    for (const number of [
      "1.7976931348623157e308",
      "1e-400",
      "12345678901234567890.5",
      `0.${"1".repeat(400)}`,
      "9".repeat(300),
    ])
      expectTaken("conversation.exported", `${CONVERSATION},"csat":{"score":${number}}}`);
    expectTaken("conversation.exported", `${CONVERSATION},"zzz":{"a":1e400}}`);
  });
});

describe("a rating", () => {
  it.each([
    ["1.0", "1"],
    ["5.00", "5"],
    ["2e0", "2"],
    ["0.5E+1", "5"],
    ["-0", "0"],
    ["-0.0", "0"],
    ["-1.0", "-1"],
    ["3", "3"],
    ["2147483647.0", "2147483647"],
  ])("that comes as %s leaves as the integer %s, read in one pass or parsed", (given, left) => {
    const data = `{"_id":"m","conversation_id":"c","date_created":"2026-10-04T00:00:00Z","review":${given}}`;
    for (const mode of ["structured", "binary"] as const)
      for (const text of [data, data.replace(/\}$/, ',"\\u0058":1}')])
        expect(rendered(exact("message.exported", text, mode))).toContain(`"review":${left},`);
  });
});

describe("rejections", () => {
  const reasonOf = (outcome: ReturnType<typeof processEvent>): RejectionReason | "accepted" | "ignored" =>
    outcome.kind === "rejected" ? outcome.reason : outcome.kind;
  const raw = (text: string | null, headers: Record<string, string> = {}) =>
    reasonOf(processEvent({ text, headers, position }, "conversation.exported"));

  it("empty values", () => {
    expect(raw(null)).toBe("ignored");
    expect(raw("")).toBe("empty_value");
  });

  it.each(["{", "[]", "null", "5", '"text"', "{}", "\ufeff{}", " "])("no event: %j", (text) => {
    expect(raw(text)).toBe("invalid_envelope");
    expect(raw(text, { "content-type": "application/cloudevents+json" })).toBe("invalid_envelope");
  });

  it.each([
    "specversion",
    "id",
    "source",
    "type",
    "time",
    "clientid",
  ])("attribute %s missing, empty or no text", (name) => {
    for (const value of [undefined, null, "", 5, {}]) {
      expect(
        reasonOf(structured("conversation.exported", conversationData, { [name]: value })),
        JSON.stringify(value),
      ).toBe("invalid_envelope");
    }
    const outcome = binary("conversation.exported", conversationData, { [`ce_${name}`]: undefined });
    expect(reasonOf(outcome)).toBe("invalid_envelope");
  });

  it.each<[RejectionReason, Record<string, unknown>]>([
    ["invalid_envelope", { specversion: "0.3" }],
    ["unexpected_type", { type: "message.exported" }],
    ["unexpected_type", { type: "conversation.deleted" }],
    ["invalid_time", { time: "yesterday" }],
    ["invalid_time", { time: "1759622400" }],
    ["date_out_of_range", { time: "1969-12-31T23:59:59.999999Z" }],
    ["date_out_of_range", { time: "2106-01-01T00:00:00Z" }],
    ["subject_mismatch", { subject: "other" }],
    ["subject_mismatch", { subject: "C" }],
    ["subject_mismatch", { subject: " " }],
  ])("%s: attributes %j", (reason, attributes) => {
    expect(reasonOf(structured("conversation.exported", conversationData, attributes))).toBe(reason);
  });

  it.each<[string, Record<string, BusHeader>]>([
    ["ce_clientid", { ce_clientid: ["a", "b"] }],
    ["ce_clientid", { ce_clientid: [Buffer.from("acme"), Buffer.from("acme")] }],
    ["ce_clientid", { ce_clientid: Buffer.from("Zürich", "latin1") }],
    ["ce_specversion", { ce_specversion: ["1.0", "1.0"] }],
    ["ce_time", { ce_time: [Buffer.from("2026-10-05T00:00:00Z"), null] }],
    ["ce_subject", { ce_subject: ["c", "d"] }],
    ["content-type", { "content-type": ["application/json", "application/cloudevents+json"] }],
    ["content-type, ce_id", { "content-type": Buffer.from([0xff]), ce_id: Buffer.from([0xc3]) }],
    ["dl-topic", { "dl-topic": ["a", "a"] }],
    ["dl-time", { "dl-time": Buffer.from([0xff]) }],
    ["dl-replays", { "dl-replays": ["1", "1"] }],
    [
      "ce_source, dl-partition, dl-offset",
      { ce_source: ["a"], "dl-partition": [], "dl-offset": [null, "1"] },
    ],
  ])("header %s with several values or no UTF-8", (names, change) => {
    expect(binary("conversation.exported", conversationData).kind).toBe("accepted");
    expect(binary("conversation.exported", conversationData, change)).toEqual({
      kind: "rejected",
      reason: "invalid_envelope",
      detail: `${names}: a header has one value, in valid UTF-8`,
    });
  });

  it.each([
    "application/cloudevents+json",
    " Application/CloudEvents+JSON; charset=UTF-8",
  ])("nothing of a structured event whose content type is %j", (type) => {
    const text = JSON.stringify({ ...attributesOf("conversation.exported"), data: conversationData });
    const headers = { "content-type": type, ce_specversion: "1.0", ce_clientid: ["a", "b"] };
    expect(reasonOf(processEvent({ text, headers, position }, "conversation.exported"))).toBe("accepted");
  });

  it.each([
    ["application/json", "accepted"],
    ["Application/JSON; charset=utf-8", "accepted"],
    [null, "accepted"],
    ["", "accepted"],
    [" ", "invalid_envelope"],
    ["text/xml", "invalid_envelope"],
    ["application/xml", "invalid_envelope"],
    ["application/jsonx", "invalid_envelope"],
  ])("content of the type %j in both modes", (type, reason) => {
    const attributes = { ...attributesOf("conversation.exported"), datacontenttype: type };
    expect(reasonOf(structured("conversation.exported", conversationData, attributes))).toBe(reason);
    const headers = { "content-type": type };
    expect(reasonOf(binary("conversation.exported", conversationData, headers))).toBe(reason);
  });

  it.each([
    [null, "accepted"],
    ["", "accepted"],
    ["application/json", "accepted"],
    ["Application/JSON; charset=utf-8", "accepted"],
    ["application/cloudevents+json", "accepted"],
    ["text/xml", "invalid_envelope"],
    ["application/octet-stream", "invalid_envelope"],
    ["application/cloudevents", "invalid_envelope"],
    ["application/cloudevents+avro", "invalid_envelope"],
    ["application/cloudevents-batch+json", "invalid_envelope"],
  ])("a structured event whose header says %j", (type, reason) => {
    const text = JSON.stringify({ ...attributesOf("conversation.exported"), data: conversationData });
    for (const ce_specversion of [undefined, null]) {
      const headers = { "content-type": type, ce_specversion };
      const outcome = processEvent({ text, headers, position }, "conversation.exported");
      expect(reasonOf(outcome)).toBe(reason);
    }
  });

  it("takes a subject that is equal, empty or absent", () => {
    for (const subject of ["c", "", null, undefined]) {
      expect(reasonOf(structured("conversation.exported", conversationData, { subject }))).toBe("accepted");
      const outcome = binary("conversation.exported", conversationData, { ce_subject: subject });
      expect(reasonOf(outcome)).toBe("accepted");
    }
  });

  it("takes an empty date of the last update for none", () => {
    const conversation = { ...conversationData, date_updated: "" };
    const none = structured("conversation.exported", conversationData);
    expect(structured("conversation.exported", conversation)).toEqual(none);
    expect(structured("end_user.exported", { ...endUserData, updated_at: "" })).toEqual(
      structured("end_user.exported", endUserData),
    );
  });

  it("takes an empty handoff_id for none, in both modes and both ways of reading", () => {
    const data = (handoffId: string): string =>
      `{"_id":"c","date_created":"2026-10-04T00:00:00Z","handoffs":[{"id":"1","handoff_id":${handoffId},"date_created":"2026-10-04T00:00:00Z"}]}`;
    for (const mode of ["structured", "binary"] as const) {
      const none = exact("conversation.exported", data("null"), mode);
      expect(reasonOf(none)).toBe("accepted");
      // The key forces the fallback reader.
      for (const text of [data('""'), data('""').replace('"handoff_id"', '"handoff\\u005fid"')])
        expect(exact("conversation.exported", text, mode)).toEqual(none);
    }
  });

  it("data that is no object", () => {
    for (const data of [undefined, null, [], "text", 5]) {
      expect(reasonOf(structured("conversation.exported", data))).toBe("invalid_envelope");
    }
  });

  it("takes every id of a person that a request for erasure can name, and none that it cannot", () => {
    const persons = {
      "conversation.exported": [conversationData, "chatter_id", "end_user_id"],
      "message.exported": [messageData, "chatter_id", "sender", "recipient"],
      "end_user.exported": [endUserData, "end_user_id"],
    } as const;
    const ids = [
      ["é".repeat(1_000), true],
      ["\n".repeat(1_000), true],
      ["é".repeat(1_001), false],
      [" ", true],
      ["\t\u00a0", true],
      ["a\u0000b", true],
      ["a\u0085", true],
      ["\u007f", true],
      ["\u2028", true],
      ["\u200b", true],
    ] as const;
    for (const [id, isGood] of ids) {
      for (const type of ["chatter_id", "end_user_id"]) {
        const request = { type: "ERASURE", identifiers: [{ type, value: id }] };
        expect(dataSubjectRequestSchema.safeParse(request).success, JSON.stringify(id)).toBe(isGood);
      }
      for (const type of ["conversation.exported", "message.exported", "end_user.exported"] as const) {
        const [data, ...fields] = persons[type];
        for (const field of fields) {
          const outcome = reasonOf(structured(type, { ...data, [field]: id }));
          expect(outcome, `${field} ${JSON.stringify(id)}`).toBe(isGood ? "accepted" : "invalid_record");
        }
      }
    }
  });

  it.each<[RejectionReason, Record<string, unknown>]>([
    ["invalid_record", { _id: undefined }],
    ["invalid_record", { _id: "" }],
    ["invalid_record", { _id: null }],
    ["invalid_record", { _id: 5 }],
    ["invalid_record", { date_created: undefined }],
    ["invalid_record", { date_created: null }],
    ["invalid_record", { date_created: 1_759_622_400 }],
    ["invalid_record", { agent_id: "a" }],
    ["invalid_record", { agent_id: [5] }],
    ["invalid_record", { agent_handle_time: "5" }],
    ["invalid_record", { is_engaged: "true" }],
    ["invalid_record", { is_engaged: 1 }],
    ["invalid_record", { language: ["en"] }],
    ["invalid_record", { csat: [] }],
    ["invalid_record", { csat: "good" }],
    ["invalid_record", { variables: [] }],
    ["invalid_record", { classifications: {} }],
    ["invalid_record", { classifications: [null] }],
    ["invalid_record", { classifications: [{ topic_id: 5 }] }],
    ["invalid_record", { classifications: [{ intents: {} }] }],
    ["invalid_record", { classifications: [{ intents: [null] }] }],
    ["invalid_record", { classifications: [{ intents: [{ status: true }] }] }],
    ["invalid_record", { used_coaching: [{ entity_name: {} }] }],
    ["invalid_record", { used_articles: [{ url: 5 }] }],
    ["invalid_record", { used_playbooks: [{ name: [] }] }],
    ["invalid_record", { used_mcp: ["x"] }],
    ["invalid_record", { used_mcp: [{ tool_id: 5 }] }],
    ["invalid_record", { handoffs: {} }],
    ["invalid_record", { handoffs: [{ date_created: "2026-10-04T00:00:00Z" }] }],
    ["invalid_record", { handoffs: [{ id: "", date_created: "2026-10-04T00:00:00Z" }] }],
    ["invalid_record", { handoffs: [{ id: "1" }] }],
    ["invalid_record", { handoffs: [{ id: "1", date_created: "2026-10-04T00:00:00Z", name: 5 }] }],
    ["invalid_timestamp", { date_created: "4 October 2026" }],
    ["invalid_timestamp", { date_created: "" }],
    ["invalid_timestamp", { date_updated: " " }],
    ["invalid_timestamp", { handoffs: [{ id: "1", date_created: "2026-10-04" }] }],
    ["date_out_of_range", { date_created: "2026-02-30T00:00:00Z" }],
    ["date_out_of_range", { date_created: "1969-12-31T23:59:59Z" }],
    ["date_out_of_range", { date_updated: "2106-01-01T00:00:00Z" }],
    ["date_out_of_range", { handoffs: [{ id: "1", date_created: "2106-01-01T00:00:00Z" }] }],
  ])("%s: conversation with %j", (reason, fields) => {
    expect(reasonOf(structured("conversation.exported", { ...conversationData, ...fields }))).toBe(reason);
  });

  it.each<[RejectionReason, Record<string, unknown>]>([
    ["invalid_record", { conversation_id: undefined }],
    ["invalid_record", { conversation_id: null }],
    ["invalid_record", { conversation_id: "" }],
    ["invalid_record", { review: "5" }],
    ["invalid_record", { review: 2.5 }],
    ["invalid_record", { message_data: "text" }],
    ["invalid_record", { link_was_clicked: 0 }],
  ])("%s: message with %j", (reason, fields) => {
    expect(reasonOf(structured("message.exported", { ...messageData, ...fields }))).toBe(reason);
  });

  it.each<[RejectionReason, Record<string, unknown>]>([
    ["invalid_record", { end_user_id: "" }],
    ["invalid_record", { profile: [] }],
    ["invalid_record", { profile: { email: 5 } }],
    ["invalid_record", { profile: { metadata: [] } }],
    ["invalid_record", { profile: { system_properties: "x" } }],
    ["invalid_record", { created_at: null }],
    ["date_out_of_range", { updated_at: "1969-12-31T23:59:59Z" }],
  ])("%s: end user with %j", (reason, fields) => {
    expect(reasonOf(structured("end_user.exported", { ...endUserData, ...fields }))).toBe(reason);
  });

  it("a time beyond the latest one", () => {
    const text = JSON.stringify({ ...attributesOf("message.exported"), data: messageData });
    const at = (latestTime: number) =>
      reasonOf(processEvent({ text, headers: {}, position, latestTime }, "message.exported"));
    expect(at(1_791_158_400_123_456)).toBe("accepted");
    expect(at(1_791_158_400_123_455)).toBe("time_in_future");
  });

  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    [
      'specversion is not "1.0"; id is empty; clientid is missing; time is not an ISO 8601 date-time',
      { specversion: "2", id: "", clientid: undefined, time: "x" },
      {},
    ],
    [
      "datacontenttype is not application/json; data is not a JSON object",
      { datacontenttype: "x", data: 5 },
      {},
    ],
    [
      "agent_handle_time is not a number; csat is not an object; handoffs.0.id is missing; handoffs.1.date_created is null; handoffs.0.date_created is not an ISO 8601 date-time",
      {},
      {
        agent_handle_time: "5",
        csat: [],
        handoffs: [{ date_created: "x" }, { id: "1", date_created: null }],
      },
    ],
    [
      `_id has more than 1000 characters; agent_id is not a list; is_engaged is not true or false`,
      {},
      { _id: "x".repeat(1_001), agent_id: 5, is_engaged: 5 },
    ],
    [
      "date_created does not exist; date_updated is not an ISO 8601 date-time; handoffs.1.date_created is not within 1970-01-01 to 2105-12-31",
      {},
      {
        date_created: "2026-02-30T00:00:00Z",
        date_updated: "x",
        handoffs: [
          { id: "1", date_created: "2026-02-03T00:00:00Z" },
          { id: "2", date_created: "2200-01-01T00:00:00Z" },
        ],
      },
    ],
    ["csat is not an object; date_created is not an ISO 8601 date-time", {}, { csat: 5, date_created: "x" }],
    [
      "csat is not an object; handoffs.0.date_created is not an ISO 8601 date-time; handoffs.2.date_created does not exist",
      {},
      {
        csat: 5,
        handoffs: [
          { id: "1", date_created: "x" },
          { id: "2", date_created: "2026-02-03T00:00:00Z" },
          { id: "3", date_created: "2026-02-30T00:00:00Z" },
        ],
      },
    ],
    [
      "chatter_id has more than 1000 characters; end_user_id has more than 1000 characters",
      {},
      { chatter_id: "x".repeat(1_001), end_user_id: "x".repeat(1_001) },
    ],
    [
      "chatter_id has more than 1000 characters; handoffs.0.date_created is not an ISO 8601 date-time",
      {},
      { chatter_id: "x".repeat(1_001), handoffs: [{ id: "1", date_created: "x" }] },
    ],
    [
      "subject is not the id of the record; date_created is not an ISO 8601 date-time",
      { subject: "other" },
      { date_created: "x" },
    ],
    ["clientid is empty; csat is not an object", { clientid: "" }, { csat: 5 }],
    [
      "time is not an ISO 8601 date-time; subject is not the id of the record; date_updated is not an ISO 8601 date-time",
      { time: "x", subject: "other" },
      { date_updated: "x" },
    ],
    [
      'specversion is not "1.0"; type is not conversation.exported; time does not exist',
      { specversion: "2", type: "message.exported", time: "2026-02-30T00:00:00Z" },
      { csat: 5 },
    ],
    [
      "data is nested deeper than 200 levels; csat is not an object; date_created is not an ISO 8601 date-time",
      {},
      { csat: 5, variables: JSON.parse(`{"a":${"[".repeat(1_000)}${"]".repeat(1_000)}}`), date_created: "x" },
    ],
  ])("name every fault: %s", (detail, attributes, fields) => {
    const data = { ...conversationData, ...fields };
    expect(structured("conversation.exported", data, { data, ...attributes })).toMatchObject({ detail });
  });

  it("name every fault of an event in binary mode, its headers first", () => {
    const of = (change: Record<string, BusHeader>, data: unknown, latestTime?: number) =>
      processEvent(
        {
          text: typeof data === "string" ? data : JSON.stringify(data),
          headers: { ...headersOf("message.exported"), ...change },
          position,
          ...(latestTime !== undefined && { latestTime }),
        },
        "message.exported",
      );
    const ids = { chatter_id: "x".repeat(1_001), sender: "x".repeat(1_001), recipient: "x".repeat(1_001) };
    expect(
      of({ ce_id: "", "content-type": "text/xml", ce_clientid: ["a", "b"] }, { ...messageData, ...ids }, 1),
    ).toEqual({
      kind: "rejected",
      reason: "invalid_envelope",
      detail:
        "ce_clientid: a header has one value, in valid UTF-8; id is empty; datacontenttype is not application/json; time is later than the bus allows; chatter_id has more than 1000 characters; recipient has more than 1000 characters; sender has more than 1000 characters",
    });
    expect(of({ ce_id: "" }, "{")).toMatchObject({ detail: "id is empty; the value is not JSON" });
  });

  it("name twenty faults and count the others", () => {
    const outcome = structured("conversation.exported", { ...conversationData, used_mcp: Array(25).fill(1) });
    if (outcome.kind !== "rejected") throw new Error("accepted");
    expect(outcome.detail.split("; ")).toHaveLength(21);
    expect(outcome.detail).toMatch(/^used_mcp\.0 is not an object; .*; and 5 more$/);
  });

  it("name fields, never their values", () => {
    const secret = "secret-value";
    for (const fields of [
      { language: [secret] },
      { agent_id: [{ secret }] },
      { date_created: secret },
      { handoffs: [{ id: "1", date_created: secret }] },
    ]) {
      const outcome = structured("conversation.exported", { ...conversationData, ...fields });
      expect(outcome.kind).toBe("rejected");
      expect(JSON.stringify(outcome)).not.toContain(secret);
    }
    const outcome = structured("conversation.exported", conversationData, {
      time: secret,
      type: secret,
      subject: secret,
    });
    expect(JSON.stringify(outcome)).not.toContain(secret);
  });
});

describe("ids that fit in no key and no link", () => {
  const withId = (id: string) => structured("conversation.exported", { ...conversationData, _id: id });

  it.each([
    ["longer than 1,000 characters", "x".repeat(1_001)],
    ["half a surrogate pair", "a\ud800b"],
  ])("refuses one that is %s", (_, id) => {
    expect(withId(id)).toMatchObject({ kind: "rejected", reason: "invalid_record" });
  });

  it("takes one of 1,000 characters with whole pairs", () => {
    expect(withId(`${"x".repeat(998)}😀`)).toMatchObject({ kind: "accepted" });
  });
});

describe("what readers' parsers refuse", () => {
  const recordOf = (more: string): string =>
    `{"_id":"x","date_created":"2026-01-01T00:00:00Z","agent_handle_time":1${more}}`;
  const variablesOf = (data: string) => {
    const { record, nonstandard } = accepted(exact("conversation.exported", data));
    const whole = textOf(record);
    return { text: /"variables":(.*)}$/s.exec(whole)?.[1], whole, nonstandard };
  };
  /** By a member that forces it. */
  const WAYS = [
    ["values", ""],
    ["text", '"exact":1.0,'],
  ] as const;

  it.each(WAYS)("a record deeper than 200 levels is a dead letter, rendered from %s", (_, member) => {
    // The record and its variables are two levels.
    const nested = (levels: number): string =>
      recordOf(`,"variables":{${member}"a":${"[".repeat(levels - 2)}${"]".repeat(levels - 2)}}`);
    expect(variablesOf(nested(200)).text).toContain(`"a":${"[".repeat(198)}]`);
    for (const levels of [201, 1_000, 200_000]) {
      expect(exact("conversation.exported", nested(levels))).toEqual({
        kind: "rejected",
        reason: "nested_too_deeply",
        detail: "data is nested deeper than 200 levels",
      });
    }
  });

  it("a flat record of many brackets is accepted", () => {
    const brackets = "[{".repeat(1_000);
    const data = recordOf(`,"browser":"${brackets}","variables":{"a":[${Array(300).fill("[]").join()}]}`);
    expect(variablesOf(data).whole).toContain(`"browser":"${brackets}"`);
  });

  it.each(WAYS)("a repeated key leaves once, rendered from %s", (_, member) => {
    const { text } = variablesOf(
      recordOf(`,"variables":{${member}"a":1,"b":[{"c":"x","d":2, "\\u0063" : {"e":1,"e":3}}],"a":"last"}`),
    );
    expect(text).toBe(`{${member}"a":"last","b":[{"c":{"e":3},"d":2}]}`);
  });

  it.each(WAYS)("half a surrogate pair leaves as U+FFFD and is counted, rendered from %s", (_, member) => {
    const variables = `{${member}"\\udc00a":"\\ud800","b":["\\uD83D\\uDE00","\\\\ud800","\\ud83d\\ud83d\\ude00\\""]}`;
    const { text, whole, nonstandard } = variablesOf(
      recordOf(
        `,"browser":"x\\ude00","agent_name":["a\\n\\uDBFF"],"unknown":"\\ud800","variables":${variables}`,
      ),
    );
    expect(text).toBe(`{${member}"\ufffda":"\ufffd","b":["😀","\\\\ud800","\ufffd😀\\""]}`);
    expect(whole).toContain('"browser":"x\ufffd"');
    expect(whole).toContain('"agent_name":["a\\n\ufffd"]');
    expect(nonstandard).toEqual(["agent_name", "browser", "variables"]);
  });

  it("columns have what the record has", () => {
    const outcome = exact("conversation.exported", recordOf(',"browser":"x\\ude00"'));
    expect(accepted(outcome).record).toMatchObject({
      columns: expect.arrayContaining(["x\ufffd"]) as unknown,
    });
  });
});
