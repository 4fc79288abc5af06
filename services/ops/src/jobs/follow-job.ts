import type { JobClient, JobName, JobView } from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { CommandDeps } from "../commands/command-deps.ts";
import { CommandError } from "../explain/explain.ts";
import { EXIT } from "../explain/exit-code.ts";
import { createJobProgress } from "./job-progress.ts";
import { createStandstillMonitor } from "./job-standstill.ts";

const LOOK_EVERY_MS = 1_000;

export const howToFollow = (id: string): string => `\`export-ops jobs follow ${id}\``;

/**
 * @throws CommandError after Ctrl-C, without Redis (the job continues both times), or when the job is gone
 */
export const followJob = async (
  jobs: Pick<JobClient, "follow" | "workers">,
  { name, id }: { readonly name: JobName; readonly id: string },
  deps: CommandDeps,
): Promise<JobView> => {
  const interrupt = deps.catchInterrupt();
  const progress = createJobProgress({ ...deps, id });
  const standstill = createStandstillMonitor({
    workers: () => jobs.workers(name),
    report: (text) => progress.report(text),
    now: deps.now,
  });
  let away = false;
  const onRedis = (until: Date | null): void => {
    away = until !== null;
    standstill.restart();
    progress.report(
      until === null
        ? "Redis is back"
        : `Redis does not answer: this command waits until ${until.toISOString()}; the job continues when Redis is back`,
      away,
    );
  };
  const timer = setInterval(() => {
    if (!away) void standstill.look();
  }, LOOK_EVERY_MS);
  let last: JobView | undefined;
  try {
    for await (const job of jobs.follow(name, id, { signal: interrupt.signal, onRedis })) {
      last = job;
      if (job.endedAt !== null) continue;
      progress.show(job);
      standstill.see(job);
    }
  } catch (error) {
    if (!interrupt.signal.aborted) throw lost(error, id);
  } finally {
    clearInterval(timer);
    // Drops an open question about workers.
    standstill.restart();
    progress.stop();
    interrupt.release();
  }
  if (interrupt.signal.aborted && (last === undefined || last.endedAt === null)) {
    throw new CommandError(
      `${id} continues without this command: follow it with ${howToFollow(id)}, stop it with \`export-ops jobs cancel ${id} --yes\``,
      { exitCode: EXIT.detached },
    );
  }
  if (last === undefined)
    throw new CommandError(`there is no job ${id}: \`export-ops jobs list\` shows the jobs`);
  return last;
};

const lost = (error: unknown, id: string): unknown => {
  if (!(error instanceof ServiceError)) return error;
  if (error.code === "job_unknown") {
    return new CommandError(`the job ${id} no longer exists: \`export-ops jobs list\` shows the jobs`);
  }
  if (error.code === "redis_unavailable") {
    return new CommandError(
      `Redis does not answer, ${id} continues when it is back: then follow it with ${howToFollow(id)}`,
      { cause: error, exitCode: EXIT.away },
    );
  }
  return error;
};
