import {
  type Attributes,
  binary,
  type BusEvent,
  EVENT_TYPES,
  type RecordKind,
  STRUCTURED,
  structured,
  type Wire,
} from "./event.ts";
import { json, type JsonText, type Member, object } from "./values/json-text.ts";
import type { Random } from "./values/random.ts";

type Parts = { readonly attributes: Attributes; readonly data: readonly Member[] };
type Case = {
  readonly reason: string;
  readonly kinds: readonly RecordKind[];
  readonly make: (parts: Parts, kind: RecordKind, random: Random) => Wire;
};

const ALL: readonly RecordKind[] = ["conversation", "message", "end_user"];
const ID: Readonly<Record<RecordKind, string>> = {
  conversation: "_id",
  message: "_id",
  end_user: "end_user_id",
};
const CREATED: Readonly<Record<RecordKind, string>> = {
  conversation: "date_created",
  message: "date_created",
  end_user: "created_at",
};

function anyMode(random: Random, attributes: Attributes, data: readonly Member[]): Wire {
  const text = object(data);
  return random.chance(0.5) ? binary(attributes, text) : structured(attributes, text, STRUCTURED);
}

function without(attributes: Attributes, name: string): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([other]) => other !== name));
}

function withField(data: readonly Member[], name: string, text: JsonText | undefined): Member[] {
  const others = data.filter(([other]) => other !== name);
  return text === undefined ? others : [...others, [name, text]];
}

function defect(kinds: readonly RecordKind[], reason: string, make: Case["make"]): Case {
  return { reason, kinds, make };
}

function attribute(reason: string, change: (attributes: Attributes, kind: RecordKind) => Attributes): Case {
  return defect(ALL, reason, (parts, kind, random) =>
    anyMode(random, change(parts.attributes, kind), parts.data),
  );
}

function field(reason: string, kind: RecordKind, name: string, text?: JsonText): Case {
  return defect([kind], reason, (parts, _kind, random) =>
    anyMode(random, parts.attributes, withField(parts.data, name, text)),
  );
}

function created(reason: string, text: JsonText | undefined): Case {
  return defect(ALL, reason, (parts, kind, random) =>
    anyMode(random, parts.attributes, withField(parts.data, CREATED[kind], text)),
  );
}

function handoff(members: readonly Member[]): JsonText {
  return `[${object(members)}]`;
}

const AT: Member = ["date_created", '"2026-10-05T10:00:00Z"'];
const broken = (parts: Parts, cut: number): Wire => {
  const wire = structured(parts.attributes, object(parts.data), STRUCTURED);
  return { ...wire, value: wire.value.subarray(0, wire.value.length - cut) };
};

/** One defect each, so that the reason is unambiguous. */
const CASES: readonly Case[] = [
  defect(ALL, "empty_value", (parts) => ({ ...binary(parts.attributes, ""), value: Buffer.alloc(0) })),
  defect(ALL, "invalid_envelope", (parts) => broken(parts, 1)),
  defect(ALL, "invalid_envelope", (parts) => broken(parts, 40)),
  defect(ALL, "invalid_envelope", (parts) => {
    const wire = structured(parts.attributes, object([...parts.data, ["device", '"@@"']]), STRUCTURED);
    const at = wire.value.indexOf("@@");
    wire.value.set([0xc3, 0x28], at);
    return wire;
  }),
  defect(ALL, "invalid_envelope", (parts) => structured({}, object(parts.data), "application/json")),
  defect(ALL, "invalid_envelope", () => structured({ specversion: "1.0" }, "{}", undefined)),
  defect(ALL, "invalid_envelope", (parts) => structured(parts.attributes, undefined, STRUCTURED)),
  defect(ALL, "invalid_envelope", (parts) => structured(parts.attributes, '"text"', STRUCTURED)),
  defect(ALL, "invalid_envelope", (parts) => structured(parts.attributes, "[]", STRUCTURED)),
  defect(ALL, "invalid_envelope", (parts) => binary(parts.attributes, "[]")),
  defect(ALL, "invalid_envelope", (parts) => binary(parts.attributes, "<xml/>")),
  defect(ALL, "invalid_envelope", () => ({
    value: Buffer.from('["batch"]'),
    headers: { "content-type": STRUCTURED },
  })),
  ...["specversion", "id", "source", "type", "time", "clientid"].map((name) =>
    defect(ALL, "invalid_envelope", (parts) =>
      structured(without(parts.attributes, name), object(parts.data), STRUCTURED),
    ),
  ),
  ...["id", "source", "type", "time", "clientid"].map((name) =>
    defect(ALL, "invalid_envelope", (parts) => binary(without(parts.attributes, name), object(parts.data))),
  ),
  attribute("invalid_envelope", (attributes) => ({ ...attributes, specversion: "0.3" })),
  attribute("invalid_envelope", (attributes) => ({ ...attributes, clientid: "" })),
  attribute("unexpected_type", (attributes) => ({ ...attributes, type: "conversation.deleted" })),
  attribute("unexpected_type", (attributes, kind) => {
    return { ...attributes, type: EVENT_TYPES[kind === "message" ? "conversation" : "message"] };
  }),
  attribute("invalid_time", (attributes) => ({ ...attributes, time: "yesterday" })),
  attribute("invalid_time", (attributes) => ({ ...attributes, time: "2026-10-05" })),
  attribute("invalid_time", (attributes) => ({ ...attributes, time: "1759622400" })),
  attribute("time_in_future", (attributes) => ({ ...attributes, time: "2099-01-01T00:00:00Z" })),
  attribute("date_out_of_range", (attributes) => ({ ...attributes, time: "1969-12-31T23:59:59.999999Z" })),
  attribute("date_out_of_range", (attributes) => ({ ...attributes, time: "2106-01-01T00:00:00Z" })),
  attribute("subject_mismatch", (attributes) => ({ ...attributes, subject: "somebody-else" })),
  defect(ALL, "invalid_record", (parts, kind, random) =>
    anyMode(random, parts.attributes, withField(parts.data, ID[kind], undefined)),
  ),
  defect(ALL, "invalid_record", (parts, kind, random) =>
    anyMode(random, parts.attributes, withField(parts.data, ID[kind], '""')),
  ),
  defect(ALL, "invalid_record", (parts, kind, random) =>
    anyMode(random, parts.attributes, withField(parts.data, ID[kind], "17")),
  ),
  created("invalid_record", undefined),
  created("invalid_record", "null"),
  created("invalid_record", "1759622400000"),
  field("invalid_record", "conversation", "agent_id", '"agent-11"'),
  field("invalid_record", "conversation", "agent_name", "[1]"),
  field("invalid_record", "conversation", "agent_handle_time", '"12"'),
  field("invalid_record", "conversation", "is_escalated", '"true"'),
  field("invalid_record", "conversation", "language", "5"),
  field("invalid_record", "conversation", "classifications", "{}"),
  field("invalid_record", "conversation", "used_mcp", '["tool"]'),
  field("invalid_record", "conversation", "used_mcp", '[{"id":5}]'),
  field("invalid_record", "conversation", "classifications", '[{"intents":[{"status":true}]}]'),
  field("invalid_record", "conversation", "csat", "[]"),
  field("invalid_record", "conversation", "variables", '"x"'),
  field("invalid_record", "conversation", "csat", '{"score":1e400}'),
  field("invalid_record", "conversation", "handoffs", '{"id":"h"}'),
  field("invalid_record", "conversation", "handoffs", handoff([["handoff_id", '"h"'], AT])),
  field("invalid_record", "conversation", "handoffs", handoff([["id", '""'], AT])),
  field("invalid_record", "conversation", "handoffs", handoff([["id", '"a"']])),
  field("invalid_record", "conversation", "handoffs", handoff([["id", '"a"'], AT, ["reason_code", "4"]])),
  field("invalid_record", "message", "conversation_id"),
  field("invalid_record", "message", "conversation_id", '""'),
  field("invalid_record", "message", "message_data", '"Hello"'),
  field("invalid_record", "message", "review", '"5"'),
  field("invalid_record", "message", "review", "2147483648"),
  field("invalid_record", "message", "link_was_clicked", '"no"'),
  field("invalid_record", "end_user", "profile", "[]"),
  field("invalid_record", "end_user", "profile", '{"email":5}'),
  field("invalid_record", "end_user", "profile", '{"metadata":[]}'),
  field("invalid_record", "end_user", "profile", '{"metadata":{"n":[-1e999]}}'),
  field("nested_too_deeply", "conversation", "variables", `{"deep":${"[".repeat(199)}${"]".repeat(199)}}`),
  field("nested_too_deeply", "message", "message_data", `${'{"a":'.repeat(1_000)}1.0${"}".repeat(1_000)}`),
  created("date_out_of_range", '"2026-02-30T10:00:00Z"'),
  created("invalid_timestamp", '"10/04/2026 08:00"'),
  created("invalid_timestamp", '""'),
  field("date_out_of_range", "conversation", "date_updated", '"2026-10-04T25:00:00Z"'),
  field(
    "invalid_timestamp",
    "conversation",
    "handoffs",
    handoff([
      ["id", '"a"'],
      ["date_created", '"soon"'],
    ]),
  ),
  field("date_out_of_range", "end_user", "updated_at", '"2026-13-01T00:00:00Z"'),
  created("date_out_of_range", '"1969-12-31T23:59:59.999999Z"'),
  created("date_out_of_range", '"2106-01-01T00:00:00"'),
  created("date_out_of_range", '"1970-01-01T00:30:00+01:00"'),
  created("date_out_of_range", '"0001-01-01T00:00:00Z"'),
  field("date_out_of_range", "conversation", "date_updated", '"2105-12-31T23:30:00-01:00"'),
  field(
    "date_out_of_range",
    "conversation",
    "handoffs",
    handoff([
      ["id", '"a"'],
      ["date_created", '"9999-12-31T23:59:59Z"'],
    ]),
  ),
  field("date_out_of_range", "end_user", "updated_at", '"1960-01-01 00:00:00"'),
];

export const POISON_REASONS: readonly string[] = [...new Set(CASES.map((one) => one.reason))];
export const POISON_CASES: number = CASES.length;

/** Neighbours have different defects. */
export function writePoison(
  random: Random,
  index: number,
  client: string,
  time: string,
  createdAt: string,
): BusEvent {
  // A step coprime to the number of cases visits all of them.
  const chosen = CASES[(index * 31) % CASES.length] ?? random.pick(CASES);
  const kind = random.pick(chosen.kinds);
  const id = `poison-${random.hex(16)}`;
  const attributes: Attributes = {
    specversion: "1.0",
    id: random.uuid(),
    source: "urn:sample:poison",
    type: EVENT_TYPES[kind],
    time,
    subject: id,
    clientid: client,
    datacontenttype: "application/json",
  };
  const data: Member[] = [
    [ID[kind], json(id)],
    [CREATED[kind], json(createdAt)],
    ...(kind === "message" ? [["conversation_id", json("poison")] as const] : []),
  ];
  const wire = chosen.make({ attributes, data }, kind, random);
  return { kind, key: `${client}/${id}`, ...wire, poison: true, reason: chosen.reason };
}
