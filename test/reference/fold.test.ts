import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSample } from "../sample/index.ts";
import { checksum } from "./compare.ts";
import type { Delivered } from "./delivered.ts";
import { type ExpectedRecord, fold, type Folded } from "./fold.ts";

type Options = {
  offset?: number;
  partition?: number;
  time?: string;
  busTime?: bigint;
  headers?: Record<string, string>;
};

let nextOffset = 0;

function event(topic: string, data: string, options: Options = {}): Delivered {
  const type = { conversations: "conversation", messages: "message", "end-users": "end_user" }[topic];
  const { offset = (nextOffset += 1), partition = 0, time = "2026-10-05T12:00:00Z", headers = {} } = options;
  const attributes = {
    specversion: "1.0",
    id: "1",
    source: "test",
    type: `${type}.exported`,
    time,
    clientid: "acme",
  };
  const value = Buffer.from(`${JSON.stringify(attributes).slice(0, -1)},"data":${data}}`);
  const delivered = { event: { value, headers }, topic, partition, offset };
  return options.busTime === undefined ? delivered : { ...delivered, busTime: options.busTime };
}

function conversation(fields: string, options: Options = {}): Delivered {
  return event("conversations", `{"_id":"c1","date_created":"2026-10-05T10:00:00Z"${fields}}`, options);
}

function only(folded: Folded): ExpectedRecord {
  const records = [folded.conversations, folded.messages, folded.endUsers].flatMap((clients) => {
    return [...clients.values()].flatMap((byId) => [...byId.values()]);
  });
  expect(records.length).toBe(1);
  const record = records[0];
  if (record === undefined) throw new Error("no record");
  return record;
}

type Handoff = { handoff_id: string | null; id: string; date_created: string; outcome_status: string | null };

function handoffsOf(folded: Folded): string[] {
  const { handoffs } = JSON.parse(only(folded).json) as { handoffs: Handoff[] };
  return handoffs.map(
    (one) => `${one.handoff_id}/${one.id}@${one.date_created.slice(14, 19)}=${one.outcome_status}`,
  );
}

/** `[handoff_id, id, minute, outcome]`. */
function withHandoffs(handoffs: [string | null, string, string, string][], options: Options = {}): Delivered {
  const entries = handoffs.map(([handoffId, id, minute, outcome]) => {
    return { handoff_id: handoffId, id, date_created: `2026-10-05T10:${minute}Z`, outcome_status: outcome };
  });
  return conversation(`,"handoffs":${JSON.stringify(entries)}`, options);
}

describe("records", () => {
  test("a bare conversation has all fields in the order of the specification", () => {
    expect(only(fold([conversation("")]))).toEqual({
      id: "c1",
      dateCreated: 1_791_194_400_000_000n,
      dateUpdated: 1_791_194_400_000_000n,
      exportedAt: 1_791_201_600_000_000n,
      conversationId: null,
      json:
        '{"_id":"c1","agent_id":[],"agent_name":[],"agent_handle_time":null,"bot_handle_time":null,' +
        '"automated_resolution_classification":null,"automated_resolution_classification_reason":null,' +
        '"browser":null,"browser_version":null,"changeset_id":null,"chatter_id":null,"classifications":[],' +
        '"csat":null,"date_created":"2026-10-05T10:00:00.000000+00:00",' +
        '"date_updated":"2026-10-05T10:00:00.000000+00:00","device":null,"end_user_id":null,' +
        '"generated_topic_id":null,"generated_topic_label":null,"generated_topic_v2_id":null,' +
        '"generated_topic_v2_title":null,"generated_topic_v2_desc":null,"generated_topic_v2_parent_id":null,' +
        '"inquiry_summary":null,"is_engaged":null,"is_escalated":null,"is_test_user":null,"language":null,' +
        '"last_agent_id":null,"last_agent_name":null,"metavariables":{},"oauth_channel":null,"platform":null,' +
        '"used_coaching":[],"used_articles":[],"handoffs":[],"used_playbooks":[],"used_mcp":[],"variables":{}}',
    });
  });

  test("a message and an end user too", () => {
    const message = event(
      "messages",
      '{"_id":"m1","conversation_id":"c1","date_created":"2026-10-05 10:00:00.5"}',
    );
    expect(only(fold([message])).json).toBe(
      '{"_id":"m1","answer_id":null,"answer_title":null,"chatter_id":null,"conversation_id":"c1",' +
        '"date_created":"2026-10-05T10:00:00.500000+00:00","link_was_clicked":null,"message_data":null,' +
        '"recipient":null,"review":null,"sender":null,"in_response_to":null}',
    );
    expect(only(fold([message])).conversationId).toBe("c1");
    const user = event(
      "end-users",
      '{"updated_at":null,"end_user_id":"u1","created_at":"2026-10-05T10:00:00Z"}',
    );
    expect(only(fold([user])).json).toBe(
      '{"end_user_id":"u1","profile":{},"created_at":"2026-10-05T10:00:00.000000+00:00",' +
        '"updated_at":"2026-10-05T10:00:00.000000+00:00"}',
    );
  });

  test("what came leaves as it came; unknown fields and record_last_updated stay behind", () => {
    const fields =
      ', "variables" : { "10": 1.0, "2": 9007199254740993 } ,"csat":{},"agent_handle_time":1E2,"nobody":1,' +
      '"used_mcp":[{"tool_name":"n","more":1e5,"id":"t"}],"classifications":[{"intents":[{"more":1}]},{}],"agent_id":["a"],"record_last_updated":"x"';
    const { json } = only(fold([conversation(fields)]));
    for (const part of [
      '"variables":{"10":1.0,"2":9007199254740993}}',
      '"csat":{},',
      '"agent_handle_time":1E2,',
      '"used_mcp":[{"id":"t","tool_id":null,"connection_id":null,"connection_name":null,"tool_name":"n","outcome_status":null}],',
      '"classifications":[{"topic_id":null,"topic_name":null,"intents":[{"intent_id":null,"intent_name":null,"status":null}]},' +
        '{"topic_id":null,"topic_name":null,"intents":[]}],',
      '"agent_id":["a"],',
    ]) {
      expect(json).toContain(part);
    }
    expect(json).not.toMatch(/nobody|more|record_last_updated/);
  });

  test("a profile leaves with its fields, what is free in it as it came", () => {
    const profile =
      '{"pronouns":1,"system_properties":{"2":1.0,"1":"x"},"email":"e","metadata":{"n":9007199254740993}}';
    const data = `{"end_user_id":"u1","created_at":"2026-10-05T10:00:00Z","profile":${profile}}`;
    expect(only(fold([event("end-users", data)])).json).toContain(
      '"profile":{"first_name":null,"last_name":null,"display_name":null,"avatar":null,"email":"e","language":null,' +
        '"metadata":{"n":9007199254740993},"system_properties":{"2":1.0,"1":"x"}},',
    );
  });

  test("the later export wins, then the later place on the bus, in whatever order they come", () => {
    const old = conversation(',"device":"old"', { time: "2026-10-05T12:00:00.000001Z", offset: 9 });
    const young = conversation(',"device":"young"', { time: "2026-10-05T14:00:00.000002+02:00", offset: 1 });
    expect(only(fold([young, old])).json).toContain('"device":"young"');
    expect(only(fold([old, young])).json).toContain('"device":"young"');
    const first = conversation(',"device":"first"', { partition: 0, offset: 7 });
    const second = conversation(',"device":"second"', { partition: 0, offset: 8 });
    const other = conversation(',"device":"other"', { partition: 1, offset: 2 });
    expect(only(fold([second, first])).json).toContain('"device":"second"');
    expect(only(fold([other, second, first])).json).toContain('"device":"other"');
  });

  test("a replayed dead letter stands where it first arrived", () => {
    const replayed = conversation(',"device":"replayed"', {
      offset: 90,
      headers: { "dl-partition": "0", "dl-offset": "3" },
    });
    const newer = conversation(',"device":"newer"', { offset: 4 });
    expect(only(fold([newer, replayed])).json).toContain('"device":"newer"');
  });
});

describe("handoffs", () => {
  const target: [string | null, string, string, string] = ["t", "a1", "10:00", "failed"];

  test("the later date wins over the later export", () => {
    const late = withHandoffs([["t", "a2", "20:00", "succeeded"]], { time: "2026-10-05T12:00:00Z" });
    const early = withHandoffs([target], { time: "2026-10-05T13:00:00Z" });
    expect(handoffsOf(fold([late, early]))).toEqual(["t/a2@20:00=succeeded"]);
    expect(handoffsOf(fold([early, late]))).toEqual(["t/a2@20:00=succeeded"]);
  });

  test("of equal dates the later export wins", () => {
    const late = withHandoffs([["t", "a1", "10:00", "succeeded"]], { time: "2026-10-05T13:00:00Z" });
    const early = withHandoffs([target], { time: "2026-10-05T12:00:00Z" });
    expect(handoffsOf(fold([late, early]))).toEqual(["t/a1@10:00=succeeded"]);
    expect(handoffsOf(fold([early, late]))).toEqual(["t/a1@10:00=succeeded"]);
  });

  test("of equal dates and equal times the later place on the bus wins, within one export the later entry", () => {
    const first = withHandoffs([target], { offset: 1 });
    const second = withHandoffs([["t", "a1", "10:00", "abandoned"]], { offset: 2 });
    expect(handoffsOf(fold([second, first]))).toEqual(["t/a1@10:00=abandoned"]);
    const both = withHandoffs([target, ["t", "a9", "10:00", "succeeded"]]);
    expect(handoffsOf(fold([both, both]))).toEqual(["t/a9@10:00=succeeded"]);
    const backwards = withHandoffs([["t", "a9", "20:00", "succeeded"], target]);
    expect(handoffsOf(fold([backwards]))).toEqual(["t/a9@20:00=succeeded"]);
  });

  test("entries never disappear", () => {
    const two = withHandoffs([target, ["u", "a2", "11:00", "failed"]], { time: "2026-10-05T12:00:00Z" });
    const none = withHandoffs([], { time: "2026-10-05T13:00:00Z" });
    expect(handoffsOf(fold([two, none]))).toEqual(["t/a1@10:00=failed", "u/a2@11:00=failed"]);
  });

  test("an attempt that gets its handoff_id later is one, and stays one behind a later attempt", () => {
    const first = withHandoffs([[null, "a1", "10:00", "failed"]], { time: "2026-10-05T12:00:00Z" });
    const named = withHandoffs([["t", "a1", "10:00", "failed"]], { time: "2026-10-05T13:00:00Z" });
    const again = withHandoffs([["t", "a2", "20:00", "failed"]], { time: "2026-10-05T14:00:00Z" });
    const unnamed = withHandoffs([[null, "a1", "10:00", "failed"]], { time: "2026-10-05T15:00:00Z" });
    expect(handoffsOf(fold([first, named]))).toEqual(["t/a1@10:00=failed"]);
    expect(handoffsOf(fold([named, first]))).toEqual(["t/a1@10:00=failed"]);
    for (const order of [
      [first, named, again],
      [again, first, named],
      [named, again, first],
    ]) {
      expect(handoffsOf(fold(order))).toEqual(["t/a2@20:00=failed"]);
    }
    expect(handoffsOf(fold([unnamed, named]))).toEqual(["null/a1@10:00=failed"]);
    const other = withHandoffs([["u", "a1", "10:00", "failed"]], { time: "2026-10-05T15:00:00Z" });
    expect(handoffsOf(fold([named, other]))).toEqual(["t/a1@10:00=failed", "u/a1@10:00=failed"]);
  });

  test("id is the key when handoff_id is null, in a space of its own; order is by date, then key", () => {
    const mixed = withHandoffs([
      ["x", "a1", "30:00", "failed"],
      [null, "x", "30:00", "failed"],
      [null, "x", "20:00", "failed"],
      ["w", "a3", "30:00", "failed"],
      ["z", "a4", "10:00", "failed"],
    ]);
    expect(handoffsOf(fold([mixed]))).toEqual([
      "z/a4@10:00=failed",
      "w/a3@30:00=failed",
      "x/a1@30:00=failed",
      "null/x@30:00=failed",
    ]);
  });

  test("an entry leaves with the fields of the specification in its order", () => {
    const entry =
      '{"more":1,"reason_code":"new","id":"a","date_created":"2026-10-05 10:00:00.1234567+02:00"}';
    expect(only(fold([conversation(`,"handoffs":[${entry}]`)])).json).toContain(
      '"handoffs":[{"name":null,"handoff_id":null,"id":"a","date_created":"2026-10-05T08:00:00.123456+00:00",' +
        '"outcome_status":null,"reason_code":"new","reasoning":null}]',
    );
  });
});

describe("rejections", () => {
  const record = '{"_id":"c1","date_created":"2026-10-05T10:00:00Z"';
  const busTime = 1_791_201_600_000_000n;

  test.each([
    ["invalid_record", event("conversations", `${record},"csat":[]}`)],
    ["invalid_record", event("conversations", `${record},"agent_id":[1]}`)],
    [
      "invalid_record",
      event("conversations", `${record},"handoffs":[{"date_created":"2026-10-05T10:00:00Z"}]}`),
    ],
    ["invalid_record", event("conversations", `${record},"used_mcp":[{"tool_id":5}]}`)],
    ["invalid_record", event("conversations", `${record},"classifications":[{"intents":[{"status":1}]}]}`)],
    [
      "invalid_record",
      event("end-users", '{"end_user_id":"u","created_at":"2026-10-05T10:00:00Z","profile":{"metadata":[]}}'),
    ],
    ["invalid_record", event("messages", `${record}}`)],
    ["invalid_record", event("messages", `${record},"conversation_id":"c","review":1.5}`)],
    ["date_out_of_range", event("conversations", `${record},"date_updated":"2026-02-30T00:00:00Z"}`)],
    ["date_out_of_range", event("conversations", `${record},"date_updated":"2106-01-01T00:00:00Z"}`)],
    ["invalid_time", event("conversations", `${record}}`, { time: "now" })],
    ["date_out_of_range", event("conversations", `${record}}`, { time: "1969-01-01T00:00:00Z" })],
    [
      "time_in_future",
      event("conversations", `${record}}`, { time: "2026-10-05T12:05:00.000001Z", busTime }),
    ],
    ["invalid_envelope", event("conversations", "null")],
    ["empty_value", { ...event("conversations", ""), event: { value: new Uint8Array(0), headers: {} } }],
    ["unexpected_type", { ...event("messages", `${record}}`), topic: "conversations" }],
  ])("%s", (reason, delivered) => {
    const { topic, partition, offset } = delivered;
    const folded = fold([delivered]);
    expect(folded.rejected).toEqual([{ topic, partition, offset, reason }]);
    expect(folded.conversations.size + folded.messages.size).toBe(0);
  });

  test("a subject unlike the id is refused, none is not", () => {
    const headers = { "content-type": "application/json", ce_specversion: "1.0", ce_id: "1", ce_source: "s" };
    const more = { ce_type: "conversation.exported", ce_time: "2026-10-05T12:00:00Z", ce_clientid: "acme" };
    const binary = (subject: Record<string, string>): Delivered => {
      const value = Buffer.from(`${record}}`);
      return {
        event: { value, headers: { ...headers, ...more, ...subject } },
        topic: "conversations",
        partition: 0,
        offset: 1,
      };
    };
    expect(only(fold([binary({})])).id).toBe("c1");
    expect(only(fold([binary({ ce_subject: "c1" })])).id).toBe("c1");
    expect(fold([binary({ ce_subject: "c2" })]).rejected[0]?.reason).toBe("subject_mismatch");
  });

  test("five minutes ahead of the bus are allowed", () => {
    expect(fold([conversation("", { time: "2026-10-05T12:05:00Z", busTime })]).rejected).toEqual([]);
  });

  test("a null value is passed over", () => {
    const nothing = { ...conversation(""), event: { value: null, headers: {} } };
    expect(fold([nothing])).toMatchObject({ ignored: 1, rejected: [], conversations: new Map() });
  });
});

test("order, repetition and repeated delivery do not matter", () => {
  const topics = { conversation: "conversations", message: "messages", end_user: "end-users" };
  const sample = createSample({
    seed: "laws",
    conversations: 12,
    endUsers: 5,
    exportsPerConversation: 4,
    nonstandardShare: 0.3,
  });
  const delivered = [...sample].map((event, offset) => {
    return { event, topic: topics[event.kind], partition: offset % 3, offset };
  });
  const sums = (folded: Folded): Set<string> => {
    const kinds = Object.entries({ c: folded.conversations, m: folded.messages, u: folded.endUsers });
    return new Set(
      kinds.flatMap(([kind, clients]) => {
        return [...clients].map(([client, records]) => `${kind} ${client} ${checksum(records.values())}`);
      }),
    );
  };
  const wanted = sums(fold(delivered));
  const shuffled = fc.shuffledSubarray(delivered, { minLength: delivered.length });
  const again = fc.subarray(delivered);
  fc.assert(
    fc.property(shuffled, again, (all, some) => {
      expect(sums(fold([...all, ...some]))).toEqual(wanted);
    }),
    { numRuns: 30 },
  );
});
