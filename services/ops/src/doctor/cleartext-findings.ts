import { parseRedisUrl, type RedisServer } from "@conversation-export/runtime";
import type { BusConfig, WarehouseConfig } from "../config.ts";
import { type Findings, findingsOf } from "./finding.ts";

const { warning } = findingsOf("TLS");

const isElsewhere = (host: string): boolean => !/^(localhost|127\..*|\[?::1\]?)$/.test(host);

/** null: its settings are wrong. */
export const cleartextFindings = (servers: {
  readonly warehouse: WarehouseConfig | null;
  readonly bus: Pick<BusConfig, "brokers" | "ssl"> | null;
  readonly queue: RedisServer | null;
}): Findings => {
  const { warehouse, bus, queue } = servers;
  const clickhouse = warehouse === null ? null : new URL(warehouse.url);
  const redis = queue === null ? undefined : parseRedisUrl(queue.url);
  const open = [
    {
      name: "ClickHouse",
      is: clickhouse?.protocol === "http:" && isElsewhere(clickhouse.hostname),
      change: "https: in CLICKHOUSE_URL",
    },
    {
      name: "Kafka",
      is:
        bus !== null &&
        bus.ssl === undefined &&
        bus.brokers.some((one) => isElsewhere(one.split(":")[0] ?? "")),
      change: "KAFKA_TLS=on",
    },
    {
      name: "Redis",
      is: redis?.tls === false && redis.hosts.some(({ host }) => isElsewhere(host)),
      change: "rediss: in REDIS_URL",
    },
  ];
  return open.flatMap(({ name, is, change }) =>
    is ? [warning(name, "records and passwords go over the network as they are", `set ${change}`)] : [],
  );
};
