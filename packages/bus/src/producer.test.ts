import { expect, it } from "vitest";
import { type OutgoingMessage, splitByBytes, toHeaders } from "./producer.ts";

const message = (name: string, size: number): OutgoingMessage => ({ key: name, value: Buffer.alloc(size) });

it("cuts into runs under the limit, keeps the order and loses nothing", () => {
  const messages = Array.from({ length: 50 }, (_, index) => message(`k${index}`, 100 * (index % 7)));
  const runs = splitByBytes(messages, 2000);
  expect(runs.flat()).toEqual(messages);
  expect(runs.length).toBeGreaterThan(5);
  for (const run of runs) {
    const bytes = run.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + (value?.length ?? 0), 0);
    expect(bytes).toBeLessThanOrEqual(2000);
  }
});

it("counts headers, and lets a message over the limit stand alone", () => {
  const heavy: OutgoingMessage = {
    key: null,
    value: "v",
    headers: { h: ["x".repeat(1500), Buffer.alloc(1500)] },
  };
  expect(splitByBytes([message("a", 10), heavy, message("b", 10)], 2000).map((run) => run.length)).toEqual([
    1, 1, 1,
  ]);
});

it("makes nothing of nothing", () => {
  expect(splitByBytes([], 2000)).toEqual([]);
});

it("gives headers without a value an empty one, for kafkajs writes no others", () => {
  const headers = { none: null, some: ["a", null], one: Buffer.from("b") };
  expect(toHeaders(headers)).toEqual({ none: "", some: ["a", ""], one: Buffer.from("b") });
});
