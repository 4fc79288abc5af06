import { formatTimestampZ, LIST_NAMES } from "@conversation-export/domain";
import { createWatermarkStore } from "@conversation-export/warehouse";
import type { CommandDeps } from "../commands/command-deps.ts";
import { readBusConfig, readTopics, readWarehouseConfig } from "../config.ts";
import { withAdmin, withWarehouse } from "../connect/connections.ts";
import { lagOf, readLag } from "../connect/read-lag.ts";
import { renderJson, renderTable } from "../output/print.ts";
import { secondsSince } from "./status.ts";

export const showPartitions = async (
  { env, print, now }: Pick<CommandDeps, "env" | "print" | "now">,
  json: boolean,
): Promise<void> => {
  const bus = readBusConfig(env);
  const warehouse = readWarehouseConfig(env);
  const watermarks = await withWarehouse(warehouse, (session) => createWatermarkStore({ session }).load());
  const partitions = await withAdmin(bus, (admin) => readLag(admin, bus));
  const topics = readTopics(env);
  const lists = LIST_NAMES.map((list) => {
    const topic = topics[list];
    const micros = watermarks[list];
    return {
      topic,
      list,
      lag: lagOf(topic, partitions),
      watermark: micros === undefined ? null : formatTimestampZ(micros),
      watermark_age_seconds: micros === undefined ? null : secondsSince(now(), micros / 1000),
    };
  });
  if (json) return print(renderJson({ group: bus.groupId, topics: lists, partitions }));
  const dash = (value: string | number | null) => value ?? "-";
  print(
    renderTable(
      ["TOPIC", "PARTITION", "START", "END", "COMMITTED", "LAG"],
      partitions.map((one) => [one.topic, one.partition, one.start, one.end, dash(one.committed), one.lag]),
    ),
  );
  print("");
  print(
    renderTable(
      ["TOPIC", "LAG", "WATERMARK", "AGE"],
      lists.map((one) => [
        one.topic,
        one.lag,
        dash(one.watermark),
        one.watermark_age_seconds === null ? "-" : `${one.watermark_age_seconds} s`,
      ]),
    ),
  );
};
