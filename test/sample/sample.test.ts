import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { fold } from "../reference/index.ts";
import { POISON_CASES, POISON_REASONS } from "./poison.ts";
import type { BusEvent } from "./event.ts";
import { createSample } from "./sample.ts";

const TOPIC_OF = { conversation: "conversations", message: "messages", end_user: "end-users" } as const;
/** Between all instants of a default sample and those of its poison. */
const BUS_TIME = BigInt(Date.parse("2026-11-01T00:00:00Z")) * 1_000n;

function fingerprint(events: Iterable<BusEvent>): string {
  const hash = createHash("sha256");
  for (const { kind, key, value, headers, poison } of events) {
    hash.update(JSON.stringify([kind, key, headers, poison, value === null])).update(value ?? "");
  }
  return hash.digest("hex");
}

describe("createSample", () => {
  test("the same options give the same bytes in the same order, another seed gives others", () => {
    const options = { seed: "again", conversations: 200, endUsers: 30 };
    const sample = createSample(options);
    expect(fingerprint(sample)).toBe(fingerprint(sample));
    expect(fingerprint(createSample(options))).toBe(fingerprint(sample));
    expect(fingerprint(createSample({ ...options, seed: "other" }))).not.toBe(fingerprint(sample));
  });

  test("its totals are what it gives, and what the reference fold makes of it", () => {
    const sample = createSample({ conversations: 1_500, endUsers: 200, poisonShare: 0.02, nullShare: 0.01 });
    const totals = sample.totals();
    const events = [...sample];
    const accepted = events.filter((event) => !event.poison && event.value !== null);
    expect(events.length).toBe(totals.events);
    expect(events.filter((event) => event.value === null).length).toBe(totals.nulls);
    for (const kind of ["conversation", "message", "end_user"] as const) {
      expect(accepted.filter((event) => event.kind === kind).length).toBe(totals.accepted[kind]);
    }

    const firsts = new Set(accepted.map((event) => fingerprint([event])));
    expect(accepted.length - firsts.size).toBe(totals.duplicates);

    const delivered = events.map((event, offset) => {
      return { event, topic: TOPIC_OF[event.kind], partition: 0, offset, busTime: BUS_TIME };
    });
    const folded = fold(delivered);
    const count = (clients: typeof folded.messages): number =>
      [...clients.values()].reduce((sum, records) => sum + records.size, 0);
    expect(count(folded.messages)).toBe(totals.records.message);
    expect(count(folded.conversations)).toBe(totals.records.conversation);
    expect(count(folded.endUsers)).toBe(totals.records.end_user);
    expect(folded.ignored).toBe(totals.nulls);

    const wanted = delivered.filter(({ event }) => event.poison);
    expect(wanted.length).toBe(totals.poison);
    expect(totals.poison).toBeGreaterThan(POISON_CASES);
    expect(folded.rejected.map(({ offset, reason }) => [offset, reason])).toEqual(
      wanted.map(({ event, offset }) => [offset, event.reason]),
    );
    expect(new Set(wanted.map(({ event }) => event.reason))).toEqual(new Set(POISON_REASONS));
    expect(POISON_REASONS.toSorted()).toEqual([
      "date_out_of_range",
      "empty_value",
      "invalid_envelope",
      "invalid_record",
      "invalid_time",
      "invalid_timestamp",
      "nested_too_deeply",
      "subject_mismatch",
      "time_in_future",
      "unexpected_type",
    ]);
  });

  test("shares of zero leave only plain first-hand events", () => {
    const shares = { lateShare: 0, duplicateShare: 0, poisonShare: 0, nullShare: 0, nonstandardShare: 0 };
    const sample = createSample({ ...shares, conversations: 300, endUsers: 0, exportsPerConversation: 4 });
    const totals = sample.totals();
    expect(totals).toMatchObject({ poison: 0, nulls: 0, duplicates: 0, accepted: { conversation: 1_200 } });
    const events = [...sample];
    expect(new Set(events.map((event) => event.value?.toString("hex"))).size).toBe(events.length);
  });

  test("is made while it is read", () => {
    const before = process.memoryUsage.rss();
    const began = performance.now();
    const first = createSample({ conversations: 50_000_000 })[Symbol.iterator]().next();
    expect(first.done).toBe(false);
    expect(performance.now() - began).toBeLessThan(2_000);
    expect(process.memoryUsage.rss() - before).toBeLessThan(200_000_000);
  });
});
