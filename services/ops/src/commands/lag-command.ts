import { formatTimestampZ, LIST_NAMES } from "@conversation-export/domain";
import { createWatermarkReader } from "@conversation-export/warehouse";
import type { Command } from "commander";
import type { CommandDeps } from "./command-deps.ts";
import { readBusConfig, readWarehouseConfig } from "../config.ts";
import { withAdmin, withWarehouse } from "../connect/connections.ts";
import { lagOf, readLag } from "../connect/read-lag.ts";
import { renderJson, renderTable } from "../output/print.ts";

/** Adds the command `lag`. */
export const addLagCommand = (program: Command, { env, print, now }: CommandDeps): void => {
  program
    .command("lag")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
START and END are the first and the next offset of a partition, COMMITTED the offset up to which ingest has stored
it, LAG the messages between COMMITTED and END; a dash means unknown. Everything that reached the bus before the
WATERMARK is readable.

Examples:
  export-ops lag
  export-ops lag --json`,
    )
    .action(async ({ json = false }: { json?: boolean }) => {
      const bus = readBusConfig(env);
      const warehouse = readWarehouseConfig(env);
      const watermarks = await withWarehouse(warehouse, (session) =>
        createWatermarkReader({ session }).load(),
      );
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
    });
};
