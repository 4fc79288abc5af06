import { isDeepStrictEqual } from "node:util";
import type { JobView } from "@conversation-export/queue";
import type { Print } from "./print.ts";

/** A job that runs may be silent for so long, one that waits for its turn for less. */
const RUNNING_PATIENCE_MS = 30_000;
const WAITING_PATIENCE_MS = 10_000;

export type StandstillWatch = {
  see(job: JobView): void;
  /** To be called every second or so. Says once, until something moves again, that nothing does. */
  look(): Promise<void>;
  /** From now on a job that stands still does so anew. */
  restart(): void;
};

const movementOf = ({ state, attempt, cancelling, progress, parts }: JobView) => ({
  state,
  attempt,
  cancelling,
  progress,
  parts,
});

const processes = (count: number): string =>
  count === 1 ? "one jobs process is connected" : `${count} jobs processes are connected`;

/** What may keep a job from moving. `workers`: the processes that could run it; null: not known. */
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

/** Watches a job that is followed and says what to look at when it does not get on. */
export const createStandstillWatch = (deps: {
  readonly workers: () => Promise<number | null>;
  readonly tell: Print;
  readonly now: () => Date;
}): StandstillWatch => {
  const now = (): number => deps.now().getTime();
  let latest: JobView | undefined;
  let movedAt = now();
  let said = false;

  const restart = (): void => {
    movedAt = now();
    said = false;
  };

  const isStill = (job: JobView): boolean => {
    // One that will be tried again stands still from then on.
    const since = Math.max(movedAt, job.nextAttemptAt?.getTime() ?? 0);
    const waits = job.state === "waiting" || job.state === "delayed";
    return now() - since >= (waits ? WAITING_PATIENCE_MS : RUNNING_PATIENCE_MS);
  };

  return {
    see: (job) => {
      if (latest === undefined || !isDeepStrictEqual(movementOf(latest), movementOf(job))) restart();
      latest = job;
    },
    look: async () => {
      if (said || latest === undefined || !isStill(latest)) return;
      said = true;
      const asked = latest;
      try {
        const workers = await deps.workers();
        if (latest === asked && said) deps.tell(describeStandstill(asked.state, workers));
      } catch {
        // Without Redis nothing is known, and whoever follows the job says that.
        said = false;
      }
    },
    restart,
  };
};
