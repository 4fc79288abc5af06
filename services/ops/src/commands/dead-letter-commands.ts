import { audited } from "../audit/audited.ts";
import { createDeadLetterReader, type DeadLetter, type DeadLetterReader } from "@conversation-export/bus";
import { REJECTION_REASONS } from "@conversation-export/domain";
import {
  DEFAULT_MAX_REPLAYS,
  type ReplayData,
  replayJob,
  type ReplayResult,
} from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import { type Command, InvalidArgumentError } from "commander";
import { checkSpan, instant, listOf, type Span, topicName, wholeNumber } from "./arguments.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { type BusConfig, readBusConfig } from "../config.ts";
import { requireYes, YES_FLAG, type YesOption } from "../output/confirm.ts";
import { withRangeReader } from "../connect/connections.ts";
import { CommandError, innermostMessage } from "../explain/explain.ts";
import {
  deadLetterContent,
  deadLetterFields,
  renderDeadLetter,
  renderDeadLetters,
} from "../output/dead-letter-output.ts";
import { renderJson } from "../output/print.ts";
import { DETACH_FLAG, type DetachOption, startJob } from "../jobs/start-job.ts";

type DeadLetterPlace = { readonly topic: string; readonly partition: number; readonly offset: number };

const deadLetterPlace = (text: string): DeadLetterPlace => {
  const [, topic = "", partition = "", offset = ""] =
    /^([\w.-]{1,249})\/(\d{1,5})\/(\d{1,15})$/.exec(text) ?? [];
  if (topic === "") {
    throw new InvalidArgumentError(
      "It must be TOPIC/PARTITION/OFFSET, as `export-ops dead-letters list` shows it.",
    );
  }
  return { topic, partition: Number(partition), offset: Number(offset) };
};

type FilterOptions = Span & {
  readonly topic?: string;
  readonly reason?: readonly string[];
};

const requireTopic = (topic: string, { topics }: BusConfig): void => {
  if (topics.includes(topic)) return;
  throw new CommandError(
    `${topic} is none of the topics of events (${topics.join(", ")}): name the topic that the record came from, and check the TOPIC_ variables`,
  );
};

const withDeadLetters = <T>(
  bus: BusConfig,
  work: (deadLetters: DeadLetterReader) => Promise<T>,
): Promise<T> =>
  withRangeReader(bus, async (reader) => {
    try {
      return await work(createDeadLetterReader({ reader, topics: bus.topics }));
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      throw new CommandError(
        `the dead letters cannot be read: check that \`export-ops topics create\` has made the topics (${innermostMessage(error)})`,
        { cause: error },
      );
    }
  });

const refusedAt = (deadLetter: DeadLetter): number => deadLetter.rejectedAt ?? 0;

/** Counts are of all matching ones. */
const newest = async (
  deadLetters: DeadLetterReader,
  topics: readonly string[],
  options: FilterOptions,
  limit: number,
): Promise<{ readonly kept: readonly DeadLetter[]; readonly counts: ReadonlyMap<string, number> }> => {
  const { reason, since, until } = options;
  const filter = {
    reasons: reason ?? null,
    from: since === undefined ? null : Date.parse(since),
    to: until === undefined ? null : Date.parse(until),
  };
  const counts = new Map<string, number>();
  let kept: DeadLetter[] = [];
  const cut = (): void => {
    kept = kept.sort((one, other) => refusedAt(other) - refusedAt(one)).slice(0, limit);
  };
  for (const topic of topics) {
    for await (const deadLetter of deadLetters.list(topic, filter)) {
      const name = `${topic} ${deadLetter.reason}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
      kept.push(deadLetter);
      if (kept.length >= 2 * limit) cut();
    }
  }
  cut();
  return { kept, counts };
};

/** null unless earlier replays are the reason. */
export const nothingReplayed = (
  { replayed, skipped }: Pick<ReplayResult, "replayed" | "skipped">,
  { again, maxReplays, dryRun }: Pick<ReplayData, "again" | "maxReplays" | "dryRun">,
): string | null => {
  if (replayed > 0) return null;
  const before = again ? 0 : skipped.replayedBefore;
  const often = skipped.tooManyReplays;
  const reasons = [
    ...(before > 0 ? [`${before} replayed before: --again replays them again`] : []),
    ...(often > 0
      ? [`${often} replayed ${maxReplays} times: a larger --max-replays replays them again`]
      : []),
  ];
  return reasons.length === 0
    ? null
    : `nothing ${dryRun ? "would be" : "is"} replayed; ${reasons.join("; ")}`;
};

export const addDeadLetterCommands = (program: Command, deps: CommandDeps): void => {
  const { env, print } = deps;
  const at = instant(deps.now);
  const addFilter = (command: Command): Command =>
    command
      .option("--topic <name>", "only those of events from this topic", topicName)
      .option(
        "--reason <list>",
        `only events rejected for these reasons: ${REJECTION_REASONS.join(", ")}`,
        listOf(REJECTION_REASONS, "reason"),
      )
      .option(
        "--since <instant>",
        "rejected from this instant on: 2026-11-01, 2026-11-01T06:00:00Z, or 3d ago",
        at,
      )
      .option("--until <instant>", "rejected before this instant", at);

  const deadLetters = program.command("dead-letters").addHelpText(
    "after",
    `
A dead letter is named TOPIC/PARTITION/OFFSET: the topic of the event, and its place in the dead-letter topic.
It stays listed when it is replayed: an event that is rejected again becomes a new one, with one more of REPLAYS BEFORE.

Examples:
  export-ops dead-letters list --since 1d
  export-ops dead-letters list --topic messages --reason invalid_record --json
  export-ops dead-letters show messages/0/12
  export-ops dead-letters replay --topic messages --reason refused_by_warehouse --dry-run
  export-ops dead-letters replay messages/0/12`,
  );

  addFilter(deadLetters.command("list").description("list the newest dead letters, without their payload"))
    .option("--limit <count>", "list at most this many", wholeNumber(1, 10_000), 50)
    .option("--json", "print JSON")
    .action(async (options: FilterOptions & { limit: number } & JsonOption, command: Command) => {
      checkSpan(options, command);
      const bus = readBusConfig(env);
      if (options.topic !== undefined) requireTopic(options.topic, bus);
      const topics = options.topic === undefined ? bus.topics : [options.topic];
      const { kept, counts } = await withDeadLetters(bus, (all) =>
        newest(all, topics, options, options.limit),
      );
      if (options.json === true) return print(renderJson(kept.map(deadLetterFields)));
      print(renderDeadLetters(kept));
      const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
      if (total === 0) return;
      const each = [...counts].map(([name, count]) => `${count} ${name}`).join(", ");
      print(`\n${kept.length === total ? "all" : `the newest ${kept.length}`} of ${total}: ${each}`);
    });

  deadLetters
    .command("show")
    .description("show a dead letter with its payload, which may be personal data")
    .argument("<dead-letter>", "TOPIC/PARTITION/OFFSET", deadLetterPlace)
    .option("--json", "print JSON")
    .action(async (place: DeadLetterPlace, { json }: JsonOption) => {
      const bus = readBusConfig(env);
      requireTopic(place.topic, bus);
      const deadLetter = await withDeadLetters(bus, (all) => all.find(place.topic, place));
      if (deadLetter === null) {
        throw new CommandError(
          `there is no dead letter ${place.topic}/${place.partition}/${place.offset}: \`export-ops dead-letters list\` shows those that are kept`,
        );
      }
      print(json === true ? renderJson(deadLetterContent(deadLetter)) : renderDeadLetter(deadLetter));
    });

  addFilter(deadLetters.command("replay").description("send events back to the topics they came from"))
    .argument(
      "[dead-letter]",
      "only this one, TOPIC/PARTITION/OFFSET (default: all that match)",
      deadLetterPlace,
    )
    .option("--again", "also those that were replayed before")
    .option(
      "--max-replays <count>",
      "leave out those that were replayed this many times",
      wholeNumber(1, 100),
      DEFAULT_MAX_REPLAYS,
    )
    .option("--dry-run", "only report what would be replayed")
    .option(...DETACH_FLAG)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Without a name, --topic, --reason or a time all dead letters are replayed, which needs --yes. An event that is rejected
again becomes a new one whose count of replays is one higher.`,
    )
    .action(
      (
        place: DeadLetterPlace | undefined,
        options: FilterOptions & { again?: true; maxReplays: number; dryRun?: true } & YesOption &
          DetachOption &
          JsonOption,
        command: Command,
      ) => {
        checkSpan(options, command);
        const { topic, reason, since, until, again = false, maxReplays, dryRun = false } = options;
        const filtered = [topic, reason, since, until].some((value) => value !== undefined);
        if (place !== undefined && filtered) {
          return command.error(
            "error: give either one dead letter, or --topic, --reason, --since and --until",
          );
        }
        if (place === undefined && !filtered && !dryRun) {
          requireYes(options, "this replays all dead letters of all topics; --dry-run shows how many");
        }
        const wanted = place?.topic ?? topic;
        if (wanted !== undefined) requireTopic(wanted, readBusConfig(env));
        const data = {
          topic: wanted ?? null,
          reasons: reason === undefined ? null : [...reason],
          from: since ?? null,
          to: until ?? null,
          place: place === undefined ? null : { partition: place.partition, offset: place.offset },
          again,
          maxReplays,
          dryRun,
        };
        return audited(command, deps, () =>
          startJob(replayJob, data, options, deps, (result) => nothingReplayed(result, data)),
        );
      },
    );
};
