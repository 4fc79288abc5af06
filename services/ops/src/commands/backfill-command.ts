import { audited } from "../audit/audited.ts";
import {
  type BackfillData,
  type BackfillResult,
  type BackfillWindow,
  backfillJob,
} from "@conversation-export/queue";
import { END_OF_TIME, formatTimestampZ } from "@conversation-export/domain";
import type { Environment } from "@conversation-export/runtime";
import { type Command, Option } from "commander";
import { clientId, instant, offsetRange, type OffsetRange, topicName, wholeNumber } from "./arguments.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { readBusConfig } from "../config.ts";
import { requireYes, YES_FLAG, type YesOption } from "../output/confirm.ts";
import { withAdmin } from "../connect/connections.ts";
import { EXIT } from "../explain/exit-code.ts";
import { CommandError, innermostMessage, usageError } from "../explain/explain.ts";
import { warnUnlessRegistered } from "../access/registered-client.ts";
import { DETACH_FLAG, type DetachOption, startJob } from "../jobs/start-job.ts";

type BackfillOptions = {
  readonly client?: string;
  readonly allClients?: true;
  readonly source: "landing" | "kafka" | "files";
  readonly location?: string;
  readonly by?: "upload" | "event";
  readonly since?: string;
  readonly until?: string;
  readonly topic?: string;
  readonly offsets?: readonly OffsetRange[];
  readonly dryRun?: true;
  readonly maxLag: number;
  readonly rate?: number;
} & YesOption &
  DetachOption &
  JsonOption;

const START_OF_TIME = "1970-01-01T00:00:00.000000Z";

type Wrong = (text: string) => never;

/** null: everything. */
const windowOf = (options: BackfillOptions, wrong: Wrong): BackfillWindow | null => {
  const { source, by, since, until, topic, offsets } = options;
  const timed = since !== undefined || until !== undefined;
  if (offsets !== undefined || topic !== undefined) {
    if (offsets === undefined || topic === undefined) return wrong("--topic and --offsets belong together");
    if (timed || by !== undefined) {
      return wrong("a window is either of offsets or of time (--since, --until, --by)");
    }
    return { by: "offsets", topic, ranges: [...offsets] };
  }
  if (!timed) return by === undefined ? null : wrong("--by needs --since or --until");
  const [from, to] = [since ?? START_OF_TIME, until ?? formatTimestampZ(END_OF_TIME)];
  const byDefault = source === "files" ? "event" : "upload";
  return from < to ? { by: by ?? byDefault, from, to } : wrong("--since must be earlier than --until");
};

const dataOf = (options: BackfillOptions, wrong: Wrong): BackfillData => {
  const { client, allClients, source, location, maxLag, rate } = options;
  if ((client === undefined) === (allClients === undefined)) {
    return wrong("give either --client or --all-clients");
  }
  if ((source === "files") !== (location !== undefined)) {
    return wrong(source === "files" ? "--source files needs --location" : "--location is for --source files");
  }
  const window = windowOf(options, wrong);
  if (source === "files" && window?.by === "offsets") {
    return wrong("files have no offsets: use --since and --until");
  }
  if (source === "files" && options.by === "upload") {
    return wrong("files have no time of upload: use --by event");
  }
  return {
    clientId: client ?? null,
    source: location === undefined ? { kind: source as "landing" | "kafka" } : { kind: "files", location },
    window,
    dryRun: options.dryRun ?? false,
    maxLag: maxLag === 0 ? null : maxLag,
    rowsPerSecond: rate ?? null,
  };
};

/** The job would only fail later. @throws CommandError */
const requirePlaces = async ({ window, source }: BackfillData, env: Environment): Promise<void> => {
  // Other sources need no brokers, and may name topics that no longer exist.
  if (window?.by !== "offsets" || source.kind !== "kafka") return;
  const bus = readBusConfig(env);
  const { topic, ranges } = window;
  if (!bus.topics.includes(topic)) {
    throw usageError(
      `${topic} is none of the topics of events (${bus.topics.join(", ")}): check --topic and the TOPIC_ variables`,
    );
  }
  const there = await withAdmin(bus, async (admin) => {
    try {
      return await admin.fetchOffsets(topic);
    } catch (error) {
      throw new CommandError(
        `the partitions of ${topic} cannot be read from Kafka: check that \`export-ops topics create\` has made it (${innermostMessage(error)})`,
        { cause: error },
      );
    }
  });
  const missing = ranges.filter((range) => !there.some(({ partition }) => partition === range.partition));
  if (missing.length === 0) return;
  const numbers = missing.map(({ partition }) => partition).join(", ");
  throw usageError(
    `${topic} has ${there.length} partitions, numbered from 0; there is no partition ${numbers}`,
  );
};

/** @throws CommandError */
const refuseUncovered = ({ uncovered }: BackfillResult): null => {
  if (uncovered === null) return null;
  const { before, records } = uncovered;
  throw new CommandError(
    `the landing table does not hold all of the window: ${records} records that were uploaded before ${before} are as they were. Compute them from the bus or from files (--source)`,
    { exitCode: EXIT.partly },
  );
};

export const addBackfillCommand = (program: Command, deps: CommandDeps): void => {
  program
    .command("backfill")
    .option("--client <id>", "the records of this client", clientId)
    .option("--all-clients", "the records of all clients")
    .addOption(
      new Option("--source <where>", "where events are read from")
        .choices(["landing", "kafka", "files"])
        .default("landing"),
    )
    .option(
      "--location <place>",
      "with --source files: a file, a folder or s3://bucket/prefix that the jobs service can read",
    )
    .option(
      "--since <instant>",
      "from this instant on: 2026-11-01, 2026-11-01T06:00:00Z, or 3d ago",
      instant(deps.now),
    )
    .option("--until <instant>", "before this instant", instant(deps.now))
    .addOption(
      new Option(
        "--by <time>",
        "what --since and --until mean: the upload (with Kafka: the arrival) or the `time` of the event (default: upload; event for files)",
      ).choices(["upload", "event"]),
    )
    .option("--topic <name>", "with --offsets: the topic", topicName)
    .option(
      "--offsets <range>",
      "PARTITION=FROM-TO instead of a time, without the offset TO; may be repeated",
      offsetRange,
    )
    .option("--dry-run", "only report what would change")
    .option(
      "--max-lag <messages>",
      "wait while ingest lags by more, before each part (other sources: before each batch); 0: never wait",
      wholeNumber(0, 1e12),
      10_000,
    )
    .option(
      "--rate <events>",
      "read at most this many events a second in each process of the jobs service (default: no limit)",
      wholeNumber(1, 1e9),
    )
    .option(...DETACH_FLAG)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
From the landing table, right rows are inserted first and wrong rows deleted after that; from the other sources rows
are only added. A dry run needs no --yes. A part that has begun continues at full speed when ingest falls behind. After
a stop or a crash the job continues from its last finished part.

Examples:
  export-ops backfill --client acme --since 3d --dry-run
  export-ops backfill --client acme --since 2026-11-01 --until 2026-11-03 --yes
  export-ops backfill --all-clients --source kafka --topic messages --offsets 0=0-5000 --offsets 1=0-4800 --yes
  export-ops backfill --client acme --source files --location s3://archive/2026/10 --rate 2000 --yes --detach`,
    )
    .action(async (options: BackfillOptions, command: Command) => {
      const data = dataOf(options, (text) => command.error(`error: ${text}`));
      if (!data.dryRun) {
        requireYes(options, "this changes stored records; --dry-run shows what it would change");
      }
      await requirePlaces(data, deps.env);
      await warnUnlessRegistered(options.client, deps);
      return audited(command, deps, () => startJob(backfillJob, data, options, deps, refuseUncovered));
    });
};
