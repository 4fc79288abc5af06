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
      erasureDeadlineMs: 72 * 3_600_000,
    });
    const reader = "http://reader:x@localhost:8123/conversation_export";
    expect(readServiceUsers({ CLICKHOUSE_READER_URL: reader })).toEqual({
      writer: null,
      reader: { url: reader },
      lookup: null,
      intake: null,
      jobs: null,
      analyst: null,
    });
  });

  it("finds the users of the services beside the address of the one for migrations", () => {
    const users = readServiceUsers({
      CLICKHOUSE_URL: "http://migrator:x@localhost:8123/export",
      CLICKHOUSE_WRITER_USER: "writer",
      CLICKHOUSE_WRITER_PASSWORD: "p@ss/w:rd%",
      CLICKHOUSE_READER_USER: "reader",
      CLICKHOUSE_INTAKE_USER: "intake",
      CLICKHOUSE_INTAKE_PASSWORD: "y",
      CLICKHOUSE_JOBS_URL: "http://other:8123/export",
      CLICKHOUSE_JOBS_USER: "jobs",
      CLICKHOUSE_JOBS_PASSWORD: "z",
    });
    expect(users).toEqual({
      writer: { url: "http://writer:p%40ss%2Fw%3Ard%25@localhost:8123/export" },
      reader: { url: "http://reader@localhost:8123/export" },
      lookup: null,
      intake: { url: "http://intake:y@localhost:8123/export" },
      jobs: { url: "http://jobs:z@other:8123/export" },
      analyst: null,
    });
  });

  it("names every wrong variable of these users", () => {
    const read = () =>
      readServiceUsers({
        CLICKHOUSE_URL: "http://migrator:x@localhost:8123/export",
        CLICKHOUSE_WRITER_PASSWORD: "x",
        CLICKHOUSE_READER_URL: "http://reader:x@localhost:8123/export",
        CLICKHOUSE_READER_PASSWORD: "x",
        CLICKHOUSE_JOBS_USER: "jobs\n",
      });
    expect(read).toThrow(
      /CLICKHOUSE_WRITER_USER: .*\n.*CLICKHOUSE_READER_PASSWORD: .*\n.*CLICKHOUSE_JOBS_USER: /,
    );
  });

  it.each([
    [() => readQueueConfig({ REDIS_URL: "localhost:6379" }), "REDIS_URL"],
    [() => readQueueConfig({ REDIS_URL: "redis+sentinel://one:26379" }), "REDIS_URL"],
    [() => readBusConfig({ KAFKA_BROKERS: "a:1", KAFKA_SASL_USERNAME: "ops" }), "KAFKA_SASL_MECHANISM"],
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
