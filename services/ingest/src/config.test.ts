import { ConfigError } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { readConfig } from "./config.ts";

const REQUIRED = {
  KAFKA_BROKERS: "a:9092, b:9093",
  CLICKHOUSE_URL: "http://writer:secret@127.0.0.1:8123/export",
};

const problemsOf = (env: Record<string, string>): string[] => {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.split(":")[0] ?? "");
    throw error;
  }
  return [];
};

it("needs the bus and the warehouse, and has defaults for the rest", () => {
  expect(problemsOf({})).toEqual(["KAFKA_BROKERS", "CLICKHOUSE_URL"]);
  expect(readConfig(REQUIRED)).toMatchObject({
    brokers: ["a:9092", "b:9093"],
    topics: { conversations: "conversations", messages: "messages", endUsers: "end-users" },
    limits: { maxTimeAheadMs: 300_000 },
  });
});

it.each([
  ["KAFKA_BROKERS", "a:9092,,"],
  ["KAFKA_BROKERS", "localhost"],
  ["KAFKA_SESSION_TIMEOUT_MS", "0"],
  ["CLICKHOUSE_URL", "localhost:8123"],
  ["BATCH_MAX_RECORDS", "0"],
  ["BUFFER_MAX_BYTES", "much"],
  ["TOPIC_MESSAGES", "conversations"],
])("refuses %s=%s", (name, value) => {
  expect(problemsOf({ ...REQUIRED, [name]: value })).toEqual([name]);
});
