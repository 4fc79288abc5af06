import {
  formatTimestampZ,
  type Micros,
  parseTimestamp,
  type UploadWindow,
  WINDOW_STATES,
  type WindowState,
} from "@conversation-export/domain";
import { windowsJob } from "@conversation-export/queue";
import { createWindowStore } from "@conversation-export/warehouse";
import type { Command } from "commander";
import { audited } from "../audit/audited.ts";
import { checkSpan, instant, listOf, type Span, wholeNumber } from "./arguments.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { readQueueConfig, readServiceSettings, readWarehouseConfig } from "../config.ts";
import { withJobClient, withWarehouse } from "../connect/connections.ts";
import { CommandError } from "../explain/explain.ts";
import { followJob } from "../jobs/follow-job.ts";
import { renderJson, renderTable } from "../output/print.ts";

type WindowOptions = {
  readonly state?: readonly WindowState[];
  readonly limit: number;
  readonly recount?: true;
} & Span &
  JsonOption;

const iso = (at: Micros | null): string | null => (at === null ? null : formatTimestampZ(at));

const fields = (line: UploadWindow) => ({
  window: iso(line.start),
  table: line.table,
  state: line.state,
  rows: line.rows,
  partitions: line.partitions,
  offsets: line.offsets,
  reopened: line.reopened,
  opened_at: iso(line.openedAt),
  closed_at: iso(line.closedAt),
  compacted_at: iso(line.compactedAt),
  backfilled_at: iso(line.backfilledAt),
  result: line.result === "" ? null : (JSON.parse(line.result) as unknown),
});

const short = (at: Micros | null): string => iso(at)?.replace(/:\d\d\.\d+Z$/, "Z") ?? "-";

const render = (lines: readonly UploadWindow[]): string =>
  renderTable(
    ["WINDOW", "TABLE", "STATE", "ROWS", "PARTITIONS", "CLOSED", "COMPACTED", "BACKFILLED"],
    lines.map((line) => [
      short(line.start),
      line.table,
      line.reopened > 0 && line.state === "open" ? "open again" : line.state,
      line.rows,
      line.partitions.length,
      short(line.closedAt),
      short(line.compactedAt),
      short(line.backfilledAt),
    ]),
  );

/** null unless all windows have other lengths. */
export const otherLengths = (windowSeconds: number, lengths: readonly number[]): string | null =>
  lengths.length === 0 || lengths.includes(windowSeconds)
    ? null
    : `there are no windows of ${windowSeconds} seconds, only of ${lengths.join(", ")}: set UPLOAD_WINDOW_SECONDS as the jobs service has it`;

export const addWindowsCommand = (program: Command, deps: CommandDeps): void => {
  const { env, print } = deps;

  const recount = (since: string | undefined): Promise<void> =>
    withJobClient(readQueueConfig(env), async (jobs) => {
      const { id } = await jobs.add(windowsJob, { since: since ?? null });
      const { state, reason } = await followJob(jobs, { name: windowsJob.name, id }, deps);
      if (state !== "completed") throw new CommandError(`the windows were not counted: ${reason ?? state}`);
    });

  program
    .command("windows")
    .option(
      "--since <instant>",
      "windows that begin at or after it: 2026-11-01, or 3d ago",
      instant(deps.now),
    )
    .option("--until <instant>", "windows that begin before it", instant(deps.now))
    .option(
      "--state <list>",
      `only in these states: ${WINDOW_STATES.join(", ")}`,
      listOf(WINDOW_STATES, "state"),
    )
    .option("--limit <count>", "the newest lines, at most this many", wholeNumber(1, 100_000), 100)
    .option("--recount", "have the jobs service count them first")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
A line is one table and one window of UPLOAD_WINDOW_SECONDS, by the time of upload (record_last_updated). The jobs
service counts them every minute. A window closes when no older row is on its way; a late row opens it again.

Examples:
  export-ops windows --since 1d
  export-ops windows --state open --recount
  export-ops windows --since 2026-11-01 --until 2026-11-02 --json`,
    )
    .action(async (options: WindowOptions, command: Command) => {
      const { since, until, state, limit } = options;
      checkSpan(options, command);
      const warehouse = readWarehouseConfig(env);
      const { windowSeconds } = readServiceSettings(env);
      if (options.recount === true) await audited(command, deps, () => recount(since));
      const from = since === undefined ? undefined : parseTimestamp(since);
      const to = until === undefined ? undefined : parseTimestamp(until);
      const [lines, lengths] = await withWarehouse(warehouse, async (session) => {
        const store = createWindowStore({ session, windowSeconds });
        const found = await store.list({
          ...(from !== undefined && { since: from }),
          ...(to !== undefined && { to }),
          ...(state !== undefined && { states: state }),
        });
        return [found, found.length === 0 ? await store.lengths() : []] as const;
      });
      const hint = otherLengths(windowSeconds, lengths);
      if (hint !== null) deps.say(hint);
      const newest = lines.slice(-limit);
      if (options.json === true) return print(renderJson(newest.map(fields)));
      print(render(newest));
      if (newest.length < lines.length) {
        print(`\nthe newest ${newest.length} of ${lines.length} lines: --limit shows more`);
      }
    });
};
