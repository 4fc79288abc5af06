import { describe, expect, it } from "vitest";
import { readConfig } from "./config.ts";

const env = {
  REDIS_URL: "redis://localhost",
  CLICKHOUSE_URL: "http://localhost",
  KAFKA_BROKERS: "one:9092, two:9092",
  SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
};

describe("readConfig", () => {
  it("reads lists, intervals and what is off", () => {
    const config = readConfig({ ...env, WINDOWS_INTERVAL_SECONDS: "5", COMPACT_INTERVAL_SECONDS: "0" });
    expect(config.kafka.brokers).toEqual(["one:9092", "two:9092"]);
    expect(config.everyMs).toMatchObject({ windows: 5_000, compact: null });
    expect(config.topology).toEqual({ cluster: null });
  });

  it("has a board only with a password", () => {
    expect(readConfig({ ...env, BOARD_USER: "somebody" }).board).toBeNull();
    expect(readConfig({ ...env, BOARD_PASSWORD: "" }).board).toBeNull();
    expect(readConfig({ ...env, BOARD_PASSWORD: "long enough to be one" }).board).toEqual({
      port: 9091,
      user: "operator",
      passwords: ["long enough to be one"],
    });
  });

  it.each([
    ["REDIS_URL", "http://localhost"],
    ["CLICKHOUSE_URL", "redis://localhost"],
    ["CLUSTER", "a'b"],
    ["KAFKA_BROKERS", "localhost"],
    ["SUPPRESSION_SECRET", "short"],
    ["BOARD_PASSWORD", "short"],
    ["JOB_LOCK_MS", "100"],
    ["WINDOWS_INTERVAL_SECONDS", "-1"],
  ])("refuses %s=%s by name, and does not say the value", (name, value) => {
    const read = () => readConfig({ ...env, [name]: value });
    expect(read).toThrow(name);
    expect(read).not.toThrow(`: ${value}`);
  });

  it("refuses the port of metrics for the board, which needs one of its own", () => {
    const ports = { ...env, METRICS_PORT: "9091" };
    expect(readConfig(ports).metricsPort).toBe(9091);
    expect(() => readConfig({ ...ports, BOARD_PASSWORD: "long enough to be one" })).toThrow("BOARD_PORT");
    const free = { ...env, METRICS_PORT: "0", BOARD_PORT: "0", BOARD_PASSWORD: "long enough to be one" };
    expect(readConfig(free).board).toMatchObject({ port: 0 });
  });

  it("refuses one topic for two kinds of records", () => {
    expect(() => readConfig({ ...env, TOPIC_MESSAGES: "conversations" })).toThrow("TOPIC_MESSAGES");
  });
});
