import { type ExportRecord, subjectOf, subjectsOf, type Suppression } from "@conversation-export/domain";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createSubjectHash } from "./subject-hash.ts";
import { createSuppressionIndex } from "./suppression-index.ts";
import { createSuppressionJudge } from "./suppression-judge.ts";
import { createKeysOf, type KeyHash, keyHash } from "./suppression-key.ts";
import { createSuppressionReader } from "./suppression-reader.ts";
import { storeOf } from "./suppression-store.fixture.ts";

const subjectHash = createSubjectHash("a secret of the tests");
const weakHash: KeyHash = (key) => [keyHash(key)[0] % 2, 0];

const start = (given: readonly Suppression[], max = 1_000, hash: KeyHash = keyHash) => {
  const world = { rows: [...given], isBehind: false, isAway: false, asked: 0, looked: 0, found: 0 };
  const shown = storeOf(() => (world.isBehind ? [] : world.rows), hash);
  const keysOf = createKeysOf(subjectHash);
  const index = createSuppressionIndex({ max, keysOf, hash });
  const read = createSuppressionReader({ index, source: shown, max });
  const judge = createSuppressionJudge({
    index,
    keysOf,
    store: {
      ...shown,
      addFound: async (rows) => {
        if (world.isAway) throw new Error("away");
        world.rows.push(...rows);
      },
      lookUp: (keys) => {
        world.asked += 1;
        return shown.lookUp(keys);
      },
    },
    onLookUp: (records) => (world.looked += records),
    onFound: () => (world.found += 1),
  });
  return { world, index, read, judge };
};

const conversation = (id: string, more: object = {}, dateCreated = 10): ExportRecord =>
  ({
    type: "conversation.exported",
    clientId: "acme",
    id,
    conversationId: id,
    dateCreated,
    columns: ["", ""],
    ...more,
  }) as never;
const messageOf = (conversationId: string, more: object = {}): ExportRecord =>
  ({
    ...conversation("m"),
    type: "message.exported",
    conversationId,
    columns: [conversationId, "", "", ""],
    ...more,
  }) as never;
const naming = (chatterId: string) => ({ columns: [chatterId, ""] });
const suppressed = (value: string, more: Partial<Suppression> = {}): Suppression => ({
  clientId: "acme",
  kind: "conversation",
  value,
  createdBefore: 20,
  ...more,
});
const person = (chatterId: string): Suppression =>
  suppressed(subjectHash.of("acme", subjectOf("chatter_id", chatterId)), { kind: "subject" });

const ids = fc.constantFrom("a", "b", "c");
const clients = fc.constantFrom("acme", "globex", "initech");
const instants = fc.constantFrom(5, 20, 999_999, 1_000_000, 1_000_001, 3_500_000);
const anyRow = fc.record({
  clientId: clients,
  kind: fc.constantFrom("conversation", "message", "subject", "end_user"),
  value: ids,
  createdBefore: instants,
});
const anyRecord = fc
  .record({
    clientId: clients,
    type: fc.constantFrom("conversation.exported", "message.exported", "end_user.exported"),
    id: ids,
    conversationId: ids,
    dateCreated: instants,
    person: fc.constantFrom("", "a", "b"),
  })
  .map(
    ({ person: id, conversationId, ...more }) =>
      ({
        ...more,
        ...{
          "conversation.exported": { conversationId: more.id, columns: [id, ""] },
          "message.exported": { conversationId, columns: [conversationId, id, "", ""] },
          "end_user.exported": { conversationId: "", columns: ["", []] },
        }[more.type],
      }) as unknown as ExportRecord,
  );

/** Independent of the code under test. */
const isErased = (rows: readonly Suppression[], record: ExportRecord): boolean => {
  const before = new Map<string, number>();
  for (const { clientId, kind, value, createdBefore } of rows) {
    const name = `${clientId} ${kind} ${value}`;
    before.set(name, Math.max(createdBefore, before.get(name) ?? 0));
  }
  const { clientId, type, id } = record;
  const names = subjectsOf(record).map((subject) => `subject ${subjectHash.of(clientId, subject)}`);
  if (type === "end_user.exported") names.push(`end_user ${id}`);
  else names.push(`${type.replace(".exported", "")} ${id}`);
  if (type === "message.exported") names.push(`conversation ${record.conversationId}`);
  return names.some((name) => record.dateCreated < (before.get(`${clientId} ${name}`) ?? 0));
};

it("answers as a Map of all suppressions does, with any hash, in much memory and in little", async () => {
  const hashed = (row: Suppression): Suppression =>
    row.kind === "subject"
      ? { ...row, value: subjectHash.of(row.clientId, subjectOf("chatter_id", row.value)) }
      : row;
  const rowLists = fc.array(anyRow.map(hashed), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(
      rowLists,
      rowLists,
      fc.array(anyRecord, { maxLength: 20 }),
      fc.constantFrom(0, 1, 3, 8, 1_000),
      fc.boolean(),
      async (first, later, records, max, isWeak) => {
        const { world, index, read, judge } = start(first, max, isWeak ? weakHash : keyHash);
        await read(1);
        const answer = async (): Promise<void> => {
          const expected = records.map((record) => isErased(world.rows, record));
          expect(await judge(records, false)).toEqual(expected);
          for (const [at, record] of records.entries())
            if (expected[at] === true) expect(index.mayDrop(record)).toBe(true);
        };
        await answer();
        world.rows.push(...later);
        await read(2);
        await answer();
      },
    ),
  );
});

it("drops nothing for a hash that two values share", async () => {
  const { world, read, judge } = start([suppressed("gone")], 10, () => [1, 1]);
  await read(1);
  expect(await judge([conversation("good"), conversation("gone")], true)).toEqual([false, true]);
  expect([world.asked, world.looked]).toEqual([1, 2]);
});

it("asks ClickHouse about nothing that memory knows to be good", async () => {
  const { world, index, read, judge } = start([suppressed("gone")]);
  await read(1);
  const good = [
    conversation("good"),
    conversation("gone", {}, 20),
    conversation("gone", { clientId: "globex" }),
  ];
  expect(good.map(index.mayDrop)).toEqual([false, false, false]);
  expect(await judge(good, true)).toEqual([false, false, false]);
  expect(world.asked).toBe(0);
});

it("lets nothing in while ClickHouse shows less than it has shown before", async () => {
  const { world, read, judge } = start([suppressed("gone")]);
  await read(1);
  world.isBehind = true;
  await expect(judge([conversation("gone")], true)).rejects.toMatchObject({
    code: "suppressions_behind",
    retryable: true,
  });
  expect(await judge([conversation("good")], true)).toEqual([false]);
  world.isBehind = false;
  expect(await judge([conversation("gone")], true)).toEqual([true]);
});

it("looks up the largest client when there is no room for all, and holds the others", async () => {
  const many = Array.from({ length: 8 }, (_, at) => suppressed(`c${at}`, { clientId: "globex" }));
  const { world, index, read, judge } = start([suppressed("gone"), ...many], 10);
  await read(1);
  expect([index.lookedUp(), index.size()]).toEqual([[], 9]);
  world.rows.push(...many.map((row) => ({ ...row, value: `${row.value} later` })));
  await read(2);
  expect([index.lookedUp(), index.size()]).toEqual([["globex"], 1]);
  const records = [
    conversation("c3", { clientId: "globex" }),
    conversation("c3 later", { clientId: "globex" }),
    conversation("good", { clientId: "globex" }),
    conversation("gone"),
    conversation("good"),
  ];
  expect(records.map(index.mayDrop)).toEqual([true, true, true, true, false]);
  expect(await judge(records, true)).toEqual([true, true, false, true, false]);
  const again = start(world.rows, 20);
  await again.read(1);
  expect(again.index.lookedUp()).toEqual([]);
});

it("reads everything again after a reading that failed midway", async () => {
  const { world, index, judge } = start([suppressed("gone")], 2);
  let fails = false;
  const shown = storeOf(() => world.rows);
  const read = createSuppressionReader({
    index,
    source: {
      ...shown,
      hashes: (take, options) =>
        fails && options.since === null ? Promise.reject(new Error("away")) : shown.hashes(take, options),
    },
    max: 2,
  });
  await read(1);
  world.rows.push(suppressed("two"), suppressed("three"));
  fails = true;
  await expect(read(2)).rejects.toThrow("away");
  expect(index.lookedUp()).toEqual(["acme"]);
  expect(await judge([conversation("gone"), conversation("good")], true)).toEqual([true, false]);
  fails = false;
  world.rows = [suppressed("gone")];
  await read(3);
  expect([index.lookedUp(), index.size()]).toEqual([[], 1]);
});

it("drops what names a record that it has noted before, and says once that it has found it", async () => {
  const { world, read, judge } = start([person("p")]);
  await read(1);
  const named = conversation("c", naming("p"));
  const later = conversation("c");
  const child = messageOf("c");
  expect(await judge([named], false)).toEqual([true]);
  expect(world.found).toBe(0);
  expect(await judge([named, later, child], true)).toEqual([true, true, true]);
  expect(world.found).toBe(1);
  expect(await judge([later, child, messageOf("other", { id: "n" })], true)).toEqual([true, true, false]);
  expect(world.found).toBe(1);
  const before = messageOf("d", { id: "before" });
  expect(await judge([before, conversation("d", naming("p"))], true)).toEqual([true, true]);
  expect(world.found).toBe(2);
});

it("notes what was erased before once more when what it names was erased later", async () => {
  const { world, read, judge } = start([suppressed("c"), { ...person("p"), createdBefore: 40 }]);
  await read(1);
  const between = { dateCreated: 30 };
  const named = conversation("c", naming("p"));
  expect(await judge([messageOf("c", between)], true)).toEqual([false]);
  expect(await judge([messageOf("c", between), conversation("c"), named], true)).toEqual([true, true, true]);
  expect(world.rows.slice(2)).toEqual([
    suppressed("c", { createdBefore: 40 }),
    suppressed("m", { kind: "message", createdBefore: 40 }),
  ]);
  expect(await judge([messageOf("c", between), named, conversation("c", {}, 40)], true)).toEqual([
    true,
    true,
    false,
  ]);
  expect(world.found).toBe(1);
});

it("answers only when what it has found is stored, and knows it then", async () => {
  const { world, index, read, judge } = start([person("p")]);
  await read(1);
  world.isAway = true;
  await expect(judge([conversation("c", naming("p"))], true)).rejects.toThrow("away");
  expect([world.found, index.mayDrop(messageOf("c"))]).toEqual([0, false]);
  world.isAway = false;
  expect(await judge([conversation("c", naming("p"))], true)).toEqual([true]);
  expect(world.rows.at(-1)).toMatchObject({ kind: "conversation", value: "c" });
  expect(index.mayDrop(messageOf("c"))).toBe(true);
});

it("leaves the room to clients that are held when it notes records of one that is looked up", async () => {
  const many = Array.from({ length: 12 }, (_, at) => suppressed(`c${at}`, { clientId: "globex" }));
  const { index, read, judge } = start([person("p"), ...many], 10);
  await read(1);
  const children = many.map(({ value, clientId }) => messageOf(value, { clientId, id: value }));
  expect(new Set(await judge(children, true))).toEqual(new Set([true]));
  expect(await judge([conversation("noted", naming("p"))], true)).toEqual([true]);
  expect([index.lookedUp(), index.size()]).toEqual([["globex"], 2]);
});
