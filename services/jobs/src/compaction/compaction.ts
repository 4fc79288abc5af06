import { randomUUID } from "node:crypto";
import {
  type Micros,
  MICROS_IN_SECOND,
  parseTimestamp,
  type UploadWindow,
  waitsForCompaction,
} from "@conversation-export/domain";
import {
  type CompactData,
  compactJob,
  type CompactResult,
  type Exclusive,
  type JobContext,
  type JobHandler,
} from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { SupersededEntries, WindowStore } from "@conversation-export/warehouse";
import { LEDGER, ROWS } from "../process/locks.ts";

/** Their keys are held in memory. */
const RECORDS_AT_A_TIME = 1_000_000;
/** A scheduled run begins no further group after this. */
const RUN_MS = 600_000;

export type CompactionDeps = {
  readonly windows: Pick<WindowStore, "list" | "save">;
  readonly entries: SupersededEntries;
  readonly alive: () => Promise<ReadonlySet<string>>;
  readonly exclusive: Pick<Exclusive, "run">;
  readonly windowSeconds: number;
  readonly now: () => Micros;
};

type Context = JobContext<CompactData>;
type Group = readonly UploadWindow[];

const startsOf = (lines: readonly UploadWindow[]): Micros[] => [...new Set(lines.map(({ start }) => start))];

/** Whole windows, oldest first. */
const groupsOf = (due: readonly UploadWindow[]): Group[] => {
  const groups: Group[] = [];
  let group: Group = [];
  for (const start of startsOf(due)) {
    group = [...group, ...due.filter((line) => line.start === start)];
    const conversations = group.filter(({ table }) => table === "conversations");
    if (conversations.reduce((sum, { rows }) => sum + rows, 0) < RECORDS_AT_A_TIME) continue;
    groups.push(group);
    group = [];
  }
  return group.length === 0 ? groups : [...groups, group];
};

export const createCompaction = (deps: CompactionDeps): JobHandler<CompactData, CompactResult> => {
  const { windows, entries, exclusive, now } = deps;
  const length = deps.windowSeconds * MICROS_IN_SECOND;

  const linesIn = async ({ range, force }: CompactData): Promise<readonly UploadWindow[]> => {
    const since = range === null ? 0 : (parseTimestamp(range.from) ?? 0);
    // Only windows that lie wholly in the range.
    const to = range === null ? Number.MAX_SAFE_INTEGER : (parseTimestamp(range.to) ?? 0) - length + 1;
    const lines = await windows.list({
      since,
      ...(!force && { states: ["open", "closed", "backfilled"] as const }),
    });
    return lines.filter(({ start }) => start < to);
  };

  /** Deletions of a dead process go on in ClickHouse without its lock. @throws ServiceError */
  const refuseDeletions = async (): Promise<void> => {
    if (!(await entries.deletionRuns())) return;
    throw new ServiceError("deletion_under_way", "rows of conversations are being deleted", {
      retryable: true,
    });
  };

  const cleanUp = async ({ data, signal }: Context, group: Group): Promise<number> => {
    const scope = { starts: startsOf(group), length };
    const chunks = Math.ceil((await entries.countWritten(scope, signal)) / RECORDS_AT_A_TIME);
    let superseded = 0;
    for (let chunk = 0; chunk < chunks; chunk += 1) {
      signal.throwIfAborted();
      const share = { ...scope, chunk, chunks };
      superseded += data.dryRun
        ? await entries.count(share, signal)
        : await exclusive.run(ROWS, signal, async (held) => {
            await refuseDeletions();
            return entries.remove(randomUUID(), share, held);
          });
    }
    return superseded;
  };

  /** A reopened line stays open. */
  const markCompacted = (group: Group, supersededUpdates: number, signal: AbortSignal): Promise<void> =>
    exclusive.run(LEDGER, signal, async (held) => {
      const seen = new Map(group.map((line) => [`${line.start} ${line.table}`, line]));
      const starts = startsOf(group);
      const lines = await windows.list({ since: Math.min(...starts), to: Math.max(...starts) + length });
      const unchanged = lines.filter((line) => {
        const before = seen.get(`${line.start} ${line.table}`);
        return before !== undefined && before.reopened === line.reopened && line.state !== "open";
      });
      const compactedAt = now();
      const result = JSON.stringify({ supersededUpdates });
      held.throwIfAborted();
      await windows.save(
        unchanged.map((line) => {
          const state = line.state === "backfilled" ? line.state : "compacted";
          return { ...line, state, compactedAt, result };
        }),
      );
    });

  return {
    type: compactJob,
    async run(context) {
      const { data, signal } = context;
      await entries.forgetDead(deps.alive);
      const lines = await linesIn(data);
      const openStarts = new Set(startsOf(lines.filter(({ state }) => state === "open")));
      // A window is due when closed for all tables.
      const due = lines.filter(
        (line) => !openStarts.has(line.start) && (waitsForCompaction(line) || data.force),
      );
      const total = startsOf(due).length;
      const endsBy = data.range === null && !data.force ? now() + RUN_MS * 1_000 : Number.MAX_SAFE_INTEGER;
      let done = 0;
      let supersededUpdates = 0;
      for (const group of groupsOf(due)) {
        if (done > 0 && now() >= endsBy) break;
        const note = new Date((group[0]?.start ?? 0) / 1_000).toISOString();
        await context.progress({ done, total, unit: "windows", note });
        const superseded = await cleanUp(context, group);
        if (!data.dryRun) await markCompacted(group, superseded, signal);
        supersededUpdates += superseded;
        done += startsOf(group).length;
      }
      await context.progress({ done, total, unit: "windows" });
      return {
        dryRun: data.dryRun,
        windows: done,
        waitingWindows: total - done,
        openWindows: openStarts.size,
        supersededUpdates,
      };
    },
  };
};
