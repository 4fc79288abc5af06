import type { BusMessage, BusRange, DeadLetter, OutgoingMessage } from "@conversation-export/bus";
import { deadLetterOf } from "@conversation-export/domain";
import { type ReplayData, replayJob } from "@conversation-export/queue";
import { type DeadLetterIdentity, deadLetterKey, type Replay } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { jobContext } from "../job-context.fixture.ts";
import { createReplay, type ReplayState } from "./replay.ts";

const DEAD = "messages.dead-letter";
const TIME = Date.parse("2026-10-20T10:00:00Z");

const deadLetter = (
  offset: number,
  change: Partial<BusMessage> = {},
  dl: Record<string, string> = {},
): DeadLetter => {
  const message: BusMessage = {
    topic: DEAD,
    partition: 0,
    offset,
    key: Buffer.from(`k${offset}`),
    value: Buffer.from(`v${offset}`),
    timestamp: TIME,
    headers: {
      trace: "t",
      "dl-reason": "invalid_record",
      "dl-topic": "messages",
      "dl-partition": "1",
      "dl-offset": String(offset + 100),
      "dl-time": new Date(TIME - 1_000).toISOString(),
      "dl-rejected-at": new Date(TIME).toISOString(),
      "dl-replays": "0",
      ...dl,
    },
    ...change,
  };
  const facts = deadLetterOf(message.headers);
  if (facts === undefined) throw new Error("no dead letter");
  return { ...facts, place: { partition: 0, offset }, message };
};

function setup(deadLetters: readonly DeadLetter[], originals: readonly BusMessage[] = []) {
  const sent: OutgoingMessage[] = [];
  const noted = new Map<string, Replay>();
  const topicIds = new Set<string | null>();
  let dieAfter = Number.POSITIVE_INFINITY;
  let fails = false;
  let refuses: string | null = null;
  const store = {
    find: (wanted: readonly DeadLetterIdentity[]) =>
      Promise.resolve(
        new Map([...noted].filter(([key]) => wanted.some((one) => deadLetterKey(one) === key))),
      ),
    add: (added: readonly DeadLetterIdentity[], runId: string, topicId: string | null) => {
      topicIds.add(topicId);
      for (const one of added) noted.set(deadLetterKey(one), { runId, place: one.place });
      return Promise.resolve();
    },
  };
  const replay = createReplay({
    topics: ["messages"],
    deadLetters: {
      ranges: () =>
        Promise.resolve([{ topic: DEAD, topicId: "one", partition: 0, from: 0, to: deadLetters.length }]),
      async *read({ from, to }: BusRange) {
        for (let at = from; at < to; at += 3) {
          const some = deadLetters.slice(at, Math.min(at + 3, to));
          yield { deadLetters: some, unreadable: 0, next: Math.min(at + 3, to) };
        }
      },
    },
    reader: {
      bounds: () => Promise.resolve([0, 1].map((partition) => ({ partition, start: 0, end: 1_000 }))),
      async *read({ partition, from, to }: BusRange) {
        for (const one of originals)
          if (one.partition === partition && one.offset >= from && one.offset < to) yield [one];
      },
    },
    producer: {
      send: (_topic, messages) => {
        if (fails) return Promise.reject(new Error("no broker"));
        if (refuses !== null && messages.some(({ value }) => String(value).startsWith("large")))
          return Promise.reject(
            new Error("cannot write", { cause: Object.assign(new Error(), { type: refuses }) }),
          );
        sent.push(...messages);
        return Promise.resolve();
      },
    },
    store,
    onReplayed: () => {},
  });
  let state: ReplayState | undefined;
  const run = (given: Partial<ReplayData> = {}) => {
    const context = jobContext<ReplayData, ReplayState>(replayJob.data.parse(given), {
      state,
      save: (next) => {
        if (dieAfter <= 0) return Promise.reject(new Error("killed"));
        dieAfter -= 1;
        state = structuredClone(next);
        return Promise.resolve();
      },
    });
    return replay.run(context);
  };
  return {
    sent,
    topicIds,
    run,
    fresh: () => {
      state = undefined;
    },
    fail: (value: boolean) => {
      fails = value;
    },
    refuse: (type: string) => {
      refuses = type;
    },
    dieAfter: (saves: number) => {
      dieAfter = saves;
    },
  };
}

const many = (count: number): DeadLetter[] =>
  Array.from({ length: count }, (_, offset) => deadLetter(offset));

it("sends a dead letter as it came, with one replay more, to the partition of its first arrival", async () => {
  const { run, sent } = setup([deadLetter(0, {}, { "dl-replays": "1" })]);
  expect(await run()).toMatchObject({ read: 1, replayed: 1 });
  const [message] = sent;
  expect(message).toMatchObject({ key: Buffer.from("k0"), value: Buffer.from("v0"), partition: 1 });
  expect(message?.headers).toMatchObject({ trace: "t", "dl-offset": "100", "dl-replays": "2" });
});

it("sends nothing in a dry run, and counts the same", async () => {
  const { run, sent, topicIds, fresh } = setup(many(7));
  const dry = await run({ dryRun: true });
  expect(sent).toEqual([]);
  expect([...topicIds]).toEqual([]);
  fresh();
  expect({ ...(await run()), dryRun: true }).toEqual(dry);
  expect(sent).toHaveLength(7);
  expect([...topicIds]).toEqual(["one"]);
});

it("sends again what no broker has acknowledged", async () => {
  const { run, sent, fail } = setup(many(2));
  fail(true);
  await expect(run()).rejects.toThrow("no broker");
  fail(false);
  expect(await run()).toMatchObject({ replayed: 2 });
  expect(sent).toHaveLength(2);
});

it("leaves out what was replayed before unless it is asked for", async () => {
  const { run, sent, fresh } = setup(many(4));
  await run();
  fresh();
  expect(await run()).toMatchObject({ replayed: 0, skipped: { replayedBefore: 4 } });
  fresh();
  expect(await run({ again: true })).toMatchObject({ replayed: 4, skipped: { replayedBefore: 0 } });
  expect(sent).toHaveLength(8);
});

it("takes two copies of a dead letter for one, near each other and far", async () => {
  const copy = { "dl-offset": "100" };
  const { run, sent } = setup([
    deadLetter(0),
    deadLetter(1, {}, copy),
    deadLetter(2),
    deadLetter(3),
    deadLetter(4, {}, copy),
  ]);
  expect(await run()).toMatchObject({ replayed: 3, skipped: { replayedBefore: 2 } });
  expect(sent).toHaveLength(3);
});

it.each([
  ["reasons", { reasons: ["empty_value"] }],
  ["an earlier end", { to: "2026-10-20T10:00:00Z" }],
  ["a later start", { from: "2026-10-20T10:00:00.001Z" }],
])("passes over dead letters for %s", async (_, filter) => {
  expect(await setup(many(2)).run(filter)).toMatchObject({ replayed: 0, skipped: { notMatching: 2 } });
});

it("leaves a record alone that was refused often enough", async () => {
  const deadLetters = [deadLetter(0, {}, { "dl-replays": "3" }), deadLetter(1, {}, { "dl-replays": "2" })];
  expect(await setup(deadLetters).run()).toMatchObject({ replayed: 1, skipped: { tooManyReplays: 1 } });
});

it.each([0, 1, 2, 3, 4])("ends as an undisturbed run when it dies after %d saves", async (saves) => {
  const { run, sent, dieAfter } = setup(many(8));
  dieAfter(saves);
  const died = await run().then(
    () => false,
    () => true,
  );
  expect(died).toBe(saves < 4);
  dieAfter(Number.POSITIVE_INFINITY);
  expect(await run()).toMatchObject({ read: 8, replayed: 8, skipped: { replayedBefore: 0 } });
  expect(new Set(sent.map(({ key }) => String(key))).size).toBe(8);
  expect(sent).toHaveLength(8);
});

it("takes a payload that was left out from where the record came first", async () => {
  const note = { value: null };
  const left = { "dl-payload": "left out" };
  const original: BusMessage = {
    topic: "messages",
    partition: 1,
    offset: 100,
    key: Buffer.from("key"),
    value: Buffer.from("large"),
    headers: { trace: "of the original" },
    timestamp: TIME - 1_000,
  };
  const others = [
    { ...original, offset: 101, timestamp: TIME },
    { ...original, offset: 102, value: null },
  ];
  const deadLetters = [0, 1, 2, 3].map((offset) => deadLetter(offset, note, left));
  const { run, sent } = setup(deadLetters, [original, ...others]);
  expect(await run()).toMatchObject({ replayed: 1, skipped: { withoutPayload: 3 } });
  expect(sent[0]).toMatchObject({ key: Buffer.from("key"), value: Buffer.from("large") });
  expect(sent[0]?.headers).not.toHaveProperty("dl-payload");
});

it.each([
  "MESSAGE_TOO_LARGE",
  "RECORD_LIST_TOO_LARGE",
])("skips what the topic refuses for its size: %s", async (type) => {
  const { run, sent, fresh, refuse } = setup([
    deadLetter(0),
    deadLetter(1, { value: Buffer.from("large") }),
    deadLetter(2),
    deadLetter(3),
  ]);
  refuse(type);
  const result = { read: 4, replayed: 3, skipped: { tooLarge: 1 } };
  expect(await run()).toMatchObject(result);
  expect(sent.map(({ value }) => String(value))).toEqual(["v0", "v2", "v3"]);
  fresh();
  expect(await run()).toMatchObject({ replayed: 0, skipped: { replayedBefore: 3, tooLarge: 1 } });
});

it("fails at another refusal", async () => {
  const { run, sent, refuse } = setup([deadLetter(0, { value: Buffer.from("large") }), deadLetter(1)]);
  refuse("TOPIC_AUTHORIZATION_FAILED");
  await expect(run()).rejects.toThrow("cannot write");
  expect(sent).toEqual([]);
});

const ofBatch = (offset: number, change: Partial<BusMessage> = {}): BusMessage => ({
  topic: "messages",
  partition: 1,
  offset,
  key: null,
  value: Buffer.from(`v${offset}`),
  headers: {},
  timestamp: TIME - 5_000 + offset,
  ...change,
});
const batch = (dl: Record<string, string> = {}): DeadLetter =>
  deadLetter(
    0,
    { key: null, value: null },
    { "dl-reason": "unreadable_batch", "dl-payload": "left out", "dl-last-offset": "104", ...dl },
  );

it("sends all messages of a batch that can be read by now, each with its own place and time", async () => {
  const replayed = { "dl-partition": "1", "dl-offset": "7", "dl-time": "", "dl-replays": "2" };
  // Compaction has removed the second.
  const { run, sent } = setup(
    [batch()],
    [
      ofBatch(100, { headers: { own: "h" } }),
      ofBatch(102, { value: null }),
      ofBatch(103),
      ofBatch(104, { headers: replayed }),
      ofBatch(105),
    ],
  );
  expect(await run()).toMatchObject({ replayed: 1, byReason: [{ deadLetters: 1 }] });
  expect(sent.map(({ value }) => String(value))).toEqual(["v100", "v103", "v104"]);
  const time = (offset: number) => new Date(TIME - 5_000 + offset).toISOString();
  expect(sent.map(({ headers }) => headers)).toMatchObject([
    { own: "h", "dl-partition": "1", "dl-offset": "100", "dl-time": time(100), "dl-replays": "1" },
    { "dl-partition": "1", "dl-offset": "103", "dl-time": time(103), "dl-replays": "1" },
    { "dl-partition": "1", "dl-offset": "7", "dl-time": "", "dl-replays": "3" },
  ]);
  for (const { headers } of sent) {
    expect(headers).not.toHaveProperty("dl-last-offset");
    expect(headers).not.toHaveProperty("dl-payload");
  }
});

const unreadableAt = (offset: number) =>
  ofBatch(offset, { value: null, unreadable: { lastOffset: 104, why: "" } });

it("skips a batch of which the topic refuses a message for its size, but sends the others", async () => {
  const large = ofBatch(103, { value: Buffer.from("large") });
  const { run, sent, refuse } = setup([batch()], [ofBatch(100), large, ofBatch(104)]);
  refuse("MESSAGE_TOO_LARGE");
  expect(await run()).toMatchObject({ replayed: 0, skipped: { tooLarge: 1 } });
  expect(sent.map(({ value }) => String(value))).toEqual(["v100", "v104"]);
});

it.each<[string, BusMessage[], Record<string, string>]>([
  ["still unreadable", [unreadableAt(100)], {}],
  ["still unreadable behind its first message", [ofBatch(100), unreadableAt(101)], {}],
  ["of a topic created anew", [ofBatch(100, { timestamp: TIME })], {}],
  ["of a topic created anew behind its first message", [ofBatch(100), ofBatch(101, { timestamp: TIME })], {}],
  ["gone from the topic", [], {}],
  ["in part beyond the end of the topic", [ofBatch(100)], { "dl-last-offset": "1000" }],
])("leaves a batch alone that is %s", async (_, originals, dl) => {
  const { run, sent } = setup([batch(dl)], originals);
  expect(await run()).toMatchObject({ replayed: 0, skipped: { withoutPayload: 1 } });
  expect(sent).toEqual([]);
});

it("takes a batch whose header was damaged, and so has no time", async () => {
  const { run, sent } = setup([batch({ "dl-time": new Date(-1).toISOString() })], [ofBatch(100)]);
  expect(await run()).toMatchObject({ replayed: 1 });
  expect(sent[0]?.headers).toMatchObject({ "dl-time": new Date(TIME - 4_900).toISOString() });
});

it.each([
  [{ topic: "others" }, "unknown_topic"],
  [{ place: { partition: 0, offset: 0 } }, "place_without_topic"],
  [{ topic: "messages", place: { partition: 0, offset: 9 } }, "unknown_dead_letter"],
])("refuses %j", async (given, code) => {
  await expect(setup(many(1)).run(given)).rejects.toMatchObject({ code, retryable: false });
});

it("replays one dead letter by its place", async () => {
  const { run, sent } = setup(many(5));
  expect(await run({ topic: "messages", place: { partition: 0, offset: 2 } })).toMatchObject({ replayed: 1 });
  expect(String(sent[0]?.value)).toBe("v2");
});
