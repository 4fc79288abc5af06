import { expect, it } from "vitest";
import { topicIdFindings } from "./topic-id-findings.ts";

const NOW = Date.parse("2026-10-20T10:00:00Z");
const of = (id: string | null, topicId: string | null, createdAnew: number | null = null) =>
  topicIdFindings(
    [{ topic: "messages", id, known: topicId === null ? undefined : { topicId, createdAnew } }],
    NOW,
  ).map(({ state, name, found }) => [state, name, found]);

it("compares the id of each topic with the one under which ingest reads", () => {
  expect(of("one", "one")).toEqual([["ok", "topic ids", "those under which ingest reads"]]);
  expect(of("one", null)).toEqual([["ok", "topic ids", "ingest has not seen all topics yet"]]);
  expect(of("two", "one")).toEqual([
    ["problem", "topic messages", "was deleted and created anew, and ingest has not noticed it"],
  ]);
});

it("shows for a week that a topic was created anew", () => {
  expect(of("two", "two", NOW - 6 * 86_400_000)).toEqual([
    [
      "warning",
      "topic messages",
      "was deleted and created anew: noticed at 2026-10-14T10:00:00.000Z, read from its beginning",
    ],
  ]);
  expect(of("two", "two", NOW - 8 * 86_400_000)[0]?.[0]).toBe("ok");
});

it("warns where brokers give no ids", () => {
  expect(of(null, "one")).toEqual([["warning", "topic ids", "these brokers give none"]]);
});
