import { expect, it } from "vitest";
import { cleartextFindings } from "./cleartext-findings.ts";

const named = (clickhouse: string, broker: string, redis: string, ssl = false): string[] =>
  cleartextFindings({
    warehouse: { url: clickhouse, cluster: null },
    bus: { brokers: ["127.0.0.1:9092", broker], ...(ssl && { ssl: {} }) },
    queue: { url: redis },
  }).map(({ name, state }) => `${state} ${name}`);

it("warns of servers elsewhere that are reached without TLS", () => {
  expect(named("http://u:p@clickhouse:8123/export", "kafka:9092", "redis://:p@redis:6379")).toEqual([
    "warning ClickHouse",
    "warning Kafka",
    "warning Redis",
  ]);
});

it("is silent with TLS, on this machine, and where settings are wrong", () => {
  const tls = ["https://clickhouse:8443/export", "kafka:9093", "rediss+sentinel://redis:26379/main"] as const;
  expect(named(...tls, true)).toEqual([]);
  expect(named("http://localhost:8123/export", "localhost:9092", "redis://127.0.0.1:6379")).toEqual([]);
  expect(cleartextFindings({ warehouse: null, bus: null, queue: null })).toEqual([]);
});
