import { formatTimestampZ } from "@conversation-export/domain";
import { createWatermarkReader, type ListName } from "@conversation-export/warehouse";
import type { Command } from "commander";
import type { CommandDeps } from "./command-deps.ts";
import { readBusConfig, readWarehouseConfig } from "./config.ts";
import { fetchLag, withAdmin, withStore } from "./connections.ts";
import { CommandError, innermostMessage } from "./explain.ts";
import { renderJson, renderTable } from "./print.ts";

/** The lists of export-api in the order of the topics of the configuration. */
const LISTS: readonly ListName[] = ["conversations", "messages", "end_users"];

/** How far ingest is behind the bus, and up to when what reached the bus is readable. */
export const addLagCommand = (program: Command, { print, now }: CommandDeps): void => {
  program
    .command("lag")
    .description("how far ingest is behind the bus, and up to when lists are complete")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
START and END are the offsets that a partition has, COMMITTED what ingest has stored, LAG the messages between; a dash
is what is not known. Everything that reached the bus before its WATERMARK is readable.

Examples:
  export-ops lag
  export-ops lag --json`,
    )
    .action(async ({ json = false }: { json?: boolean }) => {
      const bus = readBusConfig();
      const warehouse = readWarehouseConfig();
      const watermarks = await withStore(
        warehouse,
        () => createWatermarkReader({ ...warehouse, application: "export-ops" }),
        (store) => store.load(),
      );
      const partitions = await withAdmin(bus, async (admin) => {
        try {
          return await fetchLag(admin, bus);
        } catch (error) {
          throw new CommandError(
            `Kafka does not tell the lag of ${bus.topics.join(", ")}: check that \`export-ops topics create\` has made them (${innermostMessage(error)})`,
            { cause: error },
          );
        }
      });
      const lists = bus.topics.flatMap((topic, at) => {
        const list = LISTS[at];
        const micros = list === undefined ? undefined : watermarks[list];
        const ofTopic = partitions.filter((one) => one.topic === topic);
        const lags = ofTopic.map(({ lag }) => lag);
        return {
          topic,
          list: list ?? topic,
          lag: lags.includes(null) ? null : lags.reduce((sum: number, lag) => sum + (lag ?? 0), 0),
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
