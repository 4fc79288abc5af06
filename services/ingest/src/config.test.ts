import { ConfigError } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { readConfig } from "./config.ts";

const REQUIRED = {
  KAFKA_BROKERS: "a:9092, b:9093",
  CLICKHOUSE_URL: "http://writer:secret@127.0.0.1:8123/export",
  SUPPRESSION_SECRET: "0123456789abcdef0123456789abcdef",
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

it("needs the servers and the secret of suppressions, and has defaults for the rest", () => {
  expect(problemsOf({})).toEqual(["KAFKA_BROKERS", "CLICKHOUSE_URL", "SUPPRESSION_SECRET"]);
  expect(readConfig(REQUIRED)).toMatchObject({
    kafka: { brokers: ["a:9092", "b:9093"] },
    topics: { conversations: "conversations", messages: "messages", end_users: "end-users" },
    limits: { maxTimeAheadMs: 300_000 },
    landingDays: 14,
  });
});

it.each([
  ["KAFKA_BROKERS", "a:9092,,"],
  ["KAFKA_BROKERS", "localhost"],
  ["KAFKA_SESSION_TIMEOUT_MS", "0"],
  ["CLICKHOUSE_URL", "localhost:8123"],
  ["SUPPRESSION_SECRET", "short"],
  ["LANDING", "yes"],
  ["LANDING_DAYS", "0"],
  ["BATCH_MAX_RECORDS", "0"],
  ["BUFFER_MAX_BYTES", "much"],
  ["TOPIC_MESSAGES", "conversations"],
  ["KAFKA_TLS", "yes"],
])("refuses %s=%s", (name, value) => {
  expect(problemsOf({ ...REQUIRED, [name]: value })).toEqual([name]);
});

it("asks for nothing of Redis", () => {
  expect(readConfig({ ...REQUIRED, REDIS_URL: "nonsense", REDIS_CA_FILE: "/nowhere/ca.pem" })).toEqual(
    readConfig(REQUIRED),
  );
});

it("keeps no events when it is set so", () => {
  expect(readConfig({ ...REQUIRED, LANDING: "off", LANDING_DAYS: "3" }).landingDays).toBe(null);
  expect(readConfig({ ...REQUIRED, LANDING_DAYS: "3" }).landingDays).toBe(3);
});
