import { audited } from "../audit/audited.ts";
import type { Admin, PartitionOffset } from "@conversation-export/bus";
import type { Command } from "commander";
import { instant } from "./arguments.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { readBusConfig } from "../config.ts";
import { requireYes, YES_FLAG, type YesOption } from "../output/confirm.ts";
import { fetchLag, withAdmin, withRangeReader } from "../connect/connections.ts";
import { CommandError, innermostMessage } from "../explain/explain.ts";
import { renderJson, renderTable } from "../output/print.ts";

type Move = PartitionOffset & {
  /** null: ingest begins with Kafka's first message. */
  readonly from: number | null;
  /** Older messages are deleted. */
  readonly atStart: boolean;
};

const adviceOn = (error: unknown): string =>
  /authori[sz]ed/i.test(innermostMessage(error))
    ? "this user needs Read on the group and on the topics"
    : "stop all processes of ingest; after killing one wait KAFKA_SESSION_TIMEOUT_MS";

export const addOffsetsCommands = (program: Command, deps: CommandDeps): void => {
  const { print, say } = deps;
  program
    .command("offsets")
    .command("move")
    .description("let ingest read the bus again since an instant, such as after a restore")
    .requiredOption("--to <instant>", "the arrival on the bus to read from again", instant(deps.now))
    .option("--dry-run", "only show the new offsets")
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Stop all processes of ingest first: Kafka refuses while the group has members. Offsets only move back, never forward.
Reading events twice does not change records, except that rows written again get a new record_last_updated. When the
topics do not use the time of arrival (message.timestamp.type), choose an earlier instant. A dry run needs no --yes.

Examples:
  export-ops offsets move --to 2026-11-01T02:00:00Z --dry-run
  export-ops offsets move --to 2026-11-01T02:00:00Z --yes`,
    )
    .action(async (options: { to: string; dryRun?: true } & YesOption & JsonOption, command: Command) => {
      const { to, dryRun = false, json = false } = options;
      if (!dryRun) {
        requireYes(
          options,
          `this makes ingest read the bus again since ${to}; --dry-run shows the new offsets`,
        );
      }
      const bus = readBusConfig(deps.env);
      const move = async (admin: Admin): Promise<Move[]> => {
        const known = await fetchLag(admin, bus);
        const found = await withRangeReader(bus, (reader) =>
          Promise.all(bus.topics.map((topic) => reader.offsetsAt(topic, Date.parse(to)))),
        );
        const all = found.flat().map(({ topic, partition, offset }): Move => {
          const one = known.find((other) => other.topic === topic && other.partition === partition);
          const from = one?.committed ?? null;
          const start = one?.start ?? 0;
          const target = Math.min(offset, from ?? start);
          return { topic, partition, from, offset: target, atStart: start > 0 && target <= start };
        });
        const moving = all.filter(({ from, offset }) => from !== null && offset !== from);
        if (dryRun || moving.length === 0) return all;
        try {
          await admin.setCommitted(
            bus.groupId,
            moving.map(({ topic, partition, offset }) => ({ topic, partition, offset })),
          );
        } catch (error) {
          throw new CommandError(
            `Kafka refuses to move the group ${bus.groupId} (${innermostMessage(error)}): ${adviceOn(error)}`,
            { cause: error },
          );
        }
        return all;
      };
      const moves = await audited(command, deps, () => withAdmin(bus, move));
      if (json) {
        const partitions = moves.map(({ topic, partition, from, offset }) => ({
          topic,
          partition,
          from,
          to: offset,
        }));
        print(renderJson({ group: bus.groupId, dryRun, partitions }));
      } else {
        print(
          renderTable(
            ["TOPIC", "PARTITION", "FROM", "TO"],
            moves.map((one) => [one.topic, one.partition, one.from ?? "-", one.offset]),
          ),
        );
      }
      for (const { topic, partition, offset } of moves.filter(({ atStart }) => atStart)) {
        say(
          `${topic}/${partition} begins at ${offset}, the oldest message in Kafka: older messages since ${to} are lost unless the backup has them`,
        );
      }
    });
};
