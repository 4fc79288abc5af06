import { expect, it } from "vitest";
import { isOffsetOutOfRange, levelOf } from "./log-level.ts";

it.each([
  // A roll-out of the group.
  [
    "ERROR",
    "[Connection] Response Heartbeat(key: 12, version: 3)",
    "The group is rebalancing, so a rejoin is needed",
    "debug",
  ],
  [
    "ERROR",
    "[Connection] Response OffsetFetch(key: 9, version: 4)",
    "The coordinator is loading and hence can't process requests",
    "debug",
  ],
  ["ERROR", "The coordinator is not aware of this member, re-joining the group", "x", "debug"],
  [
    "ERROR",
    "Producer",
    "The producer attempted to update a transaction while another concurrent transaction is ongoing",
    "debug",
  ],
  ["WARN", "The group is rebalancing, re-joining", "x", "debug"],
  ["INFO", "Pausing fetching from 1 topics", undefined, "debug"],
  // A missing topic.
  [
    "ERROR",
    "[Connection] Response Metadata(key: 3, version: 6)",
    "This server does not host this topic-partition",
    "debug",
  ],
  // A restarting broker.
  ["ERROR", "[Connection] Connection error: connect ECONNREFUSED 127.0.0.1:1", undefined, "warn"],
  ["ERROR", "Crash: KafkaJSNumberOfRetriesExceeded: connect ECONNREFUSED", undefined, "warn"],
  ["ERROR", "Restarting the consumer in 300ms", undefined, "warn"],
  // What nobody retries.
  ["ERROR", "Offset out of range, resetting to default offset", undefined, "error"],
  [
    "ERROR",
    "[Connection] Response Fetch",
    "Not authorized to access topics: [Topic authorization failed]",
    "error",
  ],
  ["ERROR", "SASL PLAIN authentication failed: Connection closed by the server", undefined, "error"],
  ["ERROR", "Failed to execute listener: bug", undefined, "error"],
])("%s %s (%s) becomes %s", (label, message, error, level) => {
  expect(levelOf(label, message, error)).toBe(level);
});

it("knows the line that says that records were lost", () => {
  expect(isOffsetOutOfRange("Offset out of range, resetting to default offset")).toBe(true);
  expect(isOffsetOutOfRange("Offset out of range while fetching from follower, retrying with leader")).toBe(
    false,
  );
});
