import { ConfigError } from "@conversation-export/runtime";
import { describe, expect, it } from "vitest";
import {
  readBusConfig,
  readQueueConfig,
  readRequestSecret,
  readServiceSettings,
  readServiceUsers,
  readWarehouseConfig,
} from "./config.ts";

describe("the environment of the operations command", () => {
  it("needs only brokers for Kafka", () => {
    expect(readBusConfig({ KAFKA_BROKERS: "a:9092, b:9093", TOPIC_MESSAGES: "chat.messages" })).toEqual({
      brokers: ["a:9092", "b:9093"],
      groupId: "conversation-export-ingest",
      topics: ["conversations", "chat.messages", "end-users"],
      smsTopic: "sms-triggers",
    });
  });

  it("needs only the URL for ClickHouse; an empty cluster is a single server", () => {
    const url = "http://migrator:x@localhost:8123/conversation_export";
    expect(readWarehouseConfig({ CLICKHOUSE_URL: url, CLUSTER: "" })).toEqual({ url, cluster: null });
    expect(readWarehouseConfig({ CLICKHOUSE_URL: url, CLUSTER: "main" }).cluster).toBe("main");
  });

  it("takes the defaults of the services for what it compares", () => {
    expect(readServiceSettings({ LANDING: "off", LANDING_DAYS: "3" })).toEqual({
      landing: false,
      landingDays: 3,
      windowSeconds: 3_600,
      erasureDeadlineHours: 72,
    });
    const reader = "http://reader:x@localhost:8123/conversation_export";
    expect(readServiceUsers({ CLICKHOUSE_READER_URL: reader })).toEqual({
      writer: null,
      reader,
      intake: null,
      jobs: null,
    });
  });

  it.each([
    [() => readQueueConfig({ REDIS_URL: "localhost:6379" }), "REDIS_URL"],
    [() => readRequestSecret({ CURSOR_SECRET: "short" }), "CURSOR_SECRET"],
    [() => readServiceSettings({ LANDING: "yes" }), "LANDING"],
    [() => readServiceUsers({ CLICKHOUSE_JOBS_URL: "clickhouse" }), "CLICKHOUSE_JOBS_URL"],
    [() => readBusConfig({}), "KAFKA_BROKERS"],
    [() => readBusConfig({ KAFKA_BROKERS: "localhost" }), "KAFKA_BROKERS"],
    [() => readBusConfig({ KAFKA_BROKERS: "a:1,," }), "KAFKA_BROKERS"],
    [() => readBusConfig({ KAFKA_BROKERS: "a:1", TOPIC_END_USERS: "end users" }), "TOPIC_END_USERS"],
    [() => readWarehouseConfig({}), "CLICKHOUSE_URL"],
    [() => readWarehouseConfig({ CLICKHOUSE_URL: "localhost:8123" }), "CLICKHOUSE_URL"],
    [() => readWarehouseConfig({ CLICKHOUSE_URL: "http://h/d", CLUSTER: "a'b" }), "CLUSTER"],
  ])("names the wrong variable (%#)", (read, name) => {
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(name);
  });
});
