import type { PartitionOffset } from "@conversation-export/bus";
import type { Command } from "commander";
import { instant } from "./arguments.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { readBusConfig } from "./config.ts";
import { requireYes, YES_FLAG, type YesOption } from "./confirm.ts";
import { fetchLag, withAdmin, withRangeReader } from "./connections.ts";
import { CommandError, innermostMessage } from "./explain.ts";
import { renderJson, renderTable } from "./print.ts";

type Move = PartitionOffset & {
  /** null: nothing is committed, so ingest begins with the first message that Kafka has. */
  readonly from: number | null;
  /** Kafka keeps nothing older than what is asked for, though it once had. */
  readonly atStart: boolean;
};

const adviceOn = (error: unknown): string =>
  /authori[sz]ed/i.test(innermostMessage(error))
    ? "this user needs Read on the group and on the topics"
    : "stop all processes of ingest, and wait KAFKA_SESSION_TIMEOUT_MS after one that was killed";

/** What ingest reads next. */
export const addOffsetsCommands = (program: Command, deps: CommandDeps): void => {
  const { print, say } = deps;
  program
    .command("offsets")
    .description("where ingest goes on reading the bus")
    .command("move")
    .description(
      "have ingest read again what reached the bus since an instant, as after a backup was restored",
    )
    .requiredOption("--to <instant>", "the first messages of this time on the bus", instant(deps.now))
    .option("--dry-run", "only show where to")
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Stop all processes of ingest first: Kafka refuses while the group has members. Offsets only move back, never forward.
What is read twice changes no record, but those that are written again get a new record_last_updated. Where topics are
not dated on arrival (message.timestamp.type), choose an earlier instant. A dry run needs no --yes.

Examples:
  export-ops offsets move --to 2026-11-01T02:00:00Z --dry-run
  export-ops offsets move --to 2026-11-01T02:00:00Z --yes`,
    )
    .action(async (options: { to: string; dryRun?: true } & YesOption & JsonOption) => {
      const { to, dryRun = false, json = false } = options;
      if (!dryRun) {
        requireYes(
          options,
          `this has ingest read again what reached the bus since ${to}; --dry-run shows it`,
        );
      }
      const bus = readBusConfig();
      const moves = await withAdmin(bus, async (admin) => {
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
            `Kafka does not move the group ${bus.groupId} (${innermostMessage(error)}): ${adviceOn(error)}`,
            { cause: error },
          );
        }
        return all;
      });
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
          `${topic}/${partition} begins at ${offset}: Kafka has nothing older, and what it has deleted since ${to} is lost unless the backup holds it`,
        );
      }
    });
};
