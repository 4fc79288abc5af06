import { formatTimestampZ, LIST_NAMES } from "@conversation-export/domain";
import { createWatermarkStore } from "@conversation-export/warehouse";
import type { CommandDeps } from "../commands/command-deps.ts";
import { readBusConfig, readWarehouseConfig } from "../config.ts";
import { withAdmin, withWarehouse } from "../connect/connections.ts";
import { lagOf, readLag } from "../connect/read-lag.ts";
import { renderJson, renderTable } from "../output/print.ts";

export const showPartitions = async (
  { env, print, now }: Pick<CommandDeps, "env" | "print" | "now">,
  json: boolean,
): Promise<void> => {
  const bus = readBusConfig(env);
  const warehouse = readWarehouseConfig(env);
  const watermarks = await withWarehouse(warehouse, (session) => createWatermarkStore({ session }).load());
  const partitions = await withAdmin(bus, (admin) => readLag(admin, bus));
  const lists = bus.topics.flatMap((topic, at) => {
    const list = LIST_NAMES[at];
    const micros = list === undefined ? undefined : watermarks[list];
    return {
      topic,
      list: list ?? topic,
      lag: lagOf(topic, partitions),
      watermark: micros === undefined ? null : formatTimestampZ(micros),
      watermark_age_seconds:
        micros === undefined ? null : Math.max(0, Math.round((now().getTime() - micros / 1000) / 1000)),
    };
  });
  if (json) return print(renderJson({ group: bus.groupId, topics: lists, partitions }));
  const dash = (value: string | number | null) => value ?? "-";
  print(
    renderTable(
      ["TOPIC", "PARTITION", "START", "END", "COMMITTED", "LAG"],
      partitions.map((one) => [
        one.topic,
        one.partition,
        dash(one.start),
        dash(one.end),
        dash(one.committed),
        dash(one.lag),
      ]),
    ),
  );
  print("");
  print(
    renderTable(
      ["TOPIC", "LAG", "WATERMARK", "AGE"],
      lists.map((one) => [
        one.topic,
        dash(one.lag),
        dash(one.watermark),
        one.watermark_age_seconds === null ? "-" : `${one.watermark_age_seconds} s`,
      ]),
    ),
  );
};
