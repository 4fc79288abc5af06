import { expect, it } from "vitest";
import { decideMerge, type PartitionFacts } from "./merge-decision.ts";

const GIGABYTE = 1024 ** 3;

const facts = (more: Partial<PartitionFacts> = {}): PartitionFacts => ({
  parts: 20,
  rows: 10_000_000,
  bytes: 10 * GIGABYTE,
  largestBytes: 5 * GIGABYTE,
  unmerged: true,
  masked: false,
  recompress: false,
  recentInserts: 0,
  recentRows: 0,
  quietSeconds: 600,
  freeBytes: 100 * GIGABYTE,
  ...more,
});

const onePart = { parts: 1, largestBytes: 10 * GIGABYTE, unmerged: false };
const written = { recentInserts: 61, recentRows: 600_001 };

it.each<[string, Partial<PartitionFacts>, string]>([
  ["many parts", {}, "merge"],
  ["no part", { parts: 0, rows: 0, bytes: 0, largestBytes: 0, unmerged: false }, "skipped"],
  ["one merged part", onePart, "skipped"],
  ["one merged part that is to be compressed anew", { ...onePart, recompress: true }, "merge"],
  ["one small part with hidden rows", { ...onePart, bytes: 1_000, masked: true }, "merge"],
  ["one small part that was never merged", { ...onePart, bytes: 1_000, unmerged: true }, "merge"],
  ["little outside the largest part", { largestBytes: 9.1 * GIGABYTE }, "skipped"],
  ["little outside the largest part, yet small", { bytes: 1_000, largestBytes: 999 }, "merge"],
  ["many rows of many INSERTs", written, "busy"],
  ["many INSERTs of few rows", { recentInserts: 600, recentRows: 600 }, "merge"],
  ["one large INSERT", { recentInserts: 1, recentRows: 5_000_000 }, "merge"],
  ["too little room", { freeBytes: 20 * GIGABYTE - 1 }, "no_space"],
  ["just enough room", { freeBytes: 20 * GIGABYTE }, "merge"],
])("%s: %#", (_, more, decision) => {
  expect(decideMerge(facts(more))).toBe(decision);
});

it("is forced where it hardly pays, and never where it could do harm", () => {
  expect(decideMerge(facts({ largestBytes: 9.1 * GIGABYTE }), true)).toBe("merge");
  expect(decideMerge(facts(onePart), true)).toBe("skipped");
  expect(decideMerge(facts(written), true)).toBe("busy");
  expect(decideMerge(facts({ freeBytes: 0 }), true)).toBe("no_space");
});
