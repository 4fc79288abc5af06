import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type HandoffEntry, type Handoffs, mergeHandoffs } from "./handoffs.ts";

type Given = {
  handoff_id: string | null;
  id: string;
  date_created: string;
  name?: string | null;
  reason_code?: string | null;
  reasoning?: string | null;
};

function merged(list: readonly Given[] | null): Handoffs {
  const handoffs = mergeHandoffs(list);
  if (handoffs === null) throw new Error("a date is none");
  return handoffs;
}

const entriesOf = (list: readonly Given[]): readonly HandoffEntry[] =>
  merged(list).entries.filter(({ entry }) => entry !== "");

const at = (second: number): string => `2026-10-04T00:00:${String(second).padStart(2, "0")}Z`;
const target = fc.record({ handoff_id: fc.constantFrom(null, "x", "y"), id: fc.constantFrom("x", "y", "z") });

describe("mergeHandoffs", () => {
  it("does not depend on the order when dates differ", () => {
    const list = fc
      .array(target, { maxLength: 12 })
      .map((targets) =>
        targets.map((one, index): Given => ({ ...one, date_created: at(index), reasoning: `${index}` })),
      );
    const shuffled = list.chain((given) =>
      fc.tuple(
        fc.constant(given),
        fc.shuffledSubarray(given, { minLength: given.length, maxLength: given.length }),
      ),
    );
    fc.assert(
      fc.property(shuffled, ([given, permuted]) => {
        expect(merged(permuted)).toEqual(merged(given));
      }),
    );
  });

  it("keeps per target the latest, of equal dates the later in the array", () => {
    const entry = fc.record({ target, second: fc.integer({ min: 0, max: 2 }) });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 12 }), (entries) => {
        const given = entries.map(({ target, second }, index): Given => {
          return { ...target, date_created: at(second), reasoning: `${index}` };
        });
        const keyOf = (one: Given): string =>
          JSON.stringify(one.handoff_id === null ? [one.id] : ["h", one.handoff_id]);
        const latestOf = (same: Given[]): Given | undefined => {
          const latest = same.map((one) => one.date_created).reduce((a, b) => (a > b ? a : b));
          return same.filter((one) => one.date_created === latest).at(-1);
        };
        const expected = [...new Set(given.map(keyOf))].flatMap((key) => {
          const latest = latestOf(given.filter((one) => keyOf(one) === key));
          if (latest === undefined) return [];
          // An attempt that got a handoff_id has no entry without one.
          const isNamed =
            latest.handoff_id === null &&
            latestOf(given.filter(({ id }) => id === latest.id))?.handoff_id !== null;
          return isNamed ? [] : [latest.reasoning];
        });
        const kept = entriesOf(given);
        const reasonings = kept.map(({ entry }) => (JSON.parse(entry) as Given).reasoning);
        expect(new Set(reasonings)).toEqual(new Set(expected));
        expect(reasonings).toHaveLength(expected.length);
        const dates = kept.map(({ dateCreated }) => dateCreated);
        expect(dates).toEqual(dates.toSorted((a, b) => a - b));
      }),
    );
  });

  it("keeps a handoff_id and an equal id apart", () => {
    const entries = entriesOf([
      { handoff_id: "x", id: "1", date_created: at(1) },
      { handoff_id: null, id: "x", date_created: at(1) },
    ]);
    expect(entries.map(({ target, targetKind }) => [target, targetKind])).toEqual([
      ["x", "handoff_id"],
      ["x", "id"],
    ]);
  });

  it("refers from the id of an attempt to its handoff_id, in place of an entry that has none", () => {
    const named = { handoff_id: "h", id: "a", date_created: at(1) };
    const unnamed = { ...named, handoff_id: null };
    const keys = (list: readonly Given[]): unknown[] =>
      merged(list).entries.map(({ target, targetKind, entry }) => [targetKind, target, entry !== ""]);
    expect(keys([named])).toEqual([
      ["id", "a", false],
      ["handoff_id", "h", true],
    ]);
    expect(keys([unnamed, named])).toEqual(keys([named]));
    expect(keys([named, unnamed])).toEqual([
      ["id", "a", true],
      ["handoff_id", "h", true],
    ]);
  });

  it("prints the fields of the specification in its order, null where nothing is recorded", () => {
    const given = {
      reasoning: "r",
      id: "1",
      date_created: "2026-10-04 02:00:00.1+02:00",
      handoff_id: null,
      extra: 1,
    };
    expect(merged([given]).entries.map(({ entry }) => entry)).toEqual([
      '{"name":null,"handoff_id":null,"id":"1","date_created":"2026-10-04T00:00:00.100000+00:00","outcome_status":null,"reason_code":null,"reasoning":"r"}',
    ]);
  });

  it("keeps a null reason apart from unclassified, and keeps and counts an unknown one", () => {
    const given = [null, "unclassified", "brand_new"].map((reason_code, index): Given => {
      return { handoff_id: `${index}`, id: "1", date_created: at(1), reason_code };
    });
    const entries = entriesOf(given);
    const { nonstandard } = merged(given);
    expect(entries.map(({ reasonCode }) => reasonCode)).toEqual([null, "unclassified", "brand_new"]);
    expect(entries.map(({ entry }) => (JSON.parse(entry) as Given).reason_code)).toEqual([
      null,
      "unclassified",
      "brand_new",
    ]);
    expect(nonstandard).toEqual(["handoffs.reason_code"]);
  });

  it("takes null and an empty list as no handoffs", () => {
    expect(merged(null).entries).toEqual([]);
    expect(merged([]).entries).toEqual([]);
  });
});
