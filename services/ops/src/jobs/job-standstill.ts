import { isDeepStrictEqual } from "node:util";
import type { JobView } from "@conversation-export/queue";
import type { Print } from "../output/print.ts";

const RUNNING_PATIENCE_MS = 30_000;
const WAITING_PATIENCE_MS = 10_000;

const movementOf = ({ state, attempt, cancelling, progress, parts }: JobView) => ({
  state,
  attempt,
  cancelling,
  progress,
  parts,
});

const processes = (count: number): string =>
  count === 1 ? "one jobs process is connected" : `${count} jobs processes are connected`;

/** `workers` null: unknown. */
export const describeStandstill = (state: JobView["state"], workers: number | null): string => {
  if (workers === 0) return "no jobs process is connected: start the jobs service, the job waits for it";
  const waits = state === "waiting" || state === "delayed";
  const what = waits ? "is not taken" : `has not moved for ${RUNNING_PATIENCE_MS / 1000} s`;
  if (workers === null) {
    return `the job ${what}: check that the jobs service runs, and \`export-ops doctor\` for Kafka and ClickHouse`;
  }
  return waits
    ? `the job ${what}, ${processes(workers)}: \`export-ops jobs list --state active,parts\` shows what runs before it`
    : `the job ${what}, ${processes(workers)}: a step of it takes long, or Kafka, ClickHouse or Redis is away: \`export-ops doctor\` tells`;
};

export const createStandstillMonitor = (deps: {
  readonly workers: () => Promise<number | null>;
  readonly report: Print;
  readonly now: () => Date;
}) => {
  const now = (): number => deps.now().getTime();
  let latest: JobView | undefined;
  let movedAt = now();
  let said = false;

  const restart = (): void => {
    movedAt = now();
    said = false;
  };

  const isStill = (job: JobView): boolean => {
    // Expected until its next attempt.
    const since = Math.max(movedAt, job.nextAttemptAt?.getTime() ?? 0);
    const waits = job.state === "waiting" || job.state === "delayed";
    return now() - since >= (waits ? WAITING_PATIENCE_MS : RUNNING_PATIENCE_MS);
  };

  return {
    see: (job: JobView): void => {
      if (latest === undefined || !isDeepStrictEqual(movementOf(latest), movementOf(job))) restart();
      latest = job;
    },
    /** Call it every second. */
    look: async (): Promise<void> => {
      if (said || latest === undefined || !isStill(latest)) return;
      said = true;
      const asked = latest;
      try {
        const workers = await deps.workers();
        if (latest === asked && said) deps.report(describeStandstill(asked.state, workers));
      } catch {
        // `followJob` reports Redis.
        said = false;
      }
    },
    restart,
  };
};
