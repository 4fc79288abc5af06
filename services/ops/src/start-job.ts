import type { JobClient, JobType } from "@conversation-export/queue";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { readQueueConfig } from "./config.ts";
import { withJobClient } from "./connections.ts";
import { followJob, howToFollow } from "./follow-job.ts";
import { printEnded } from "./job-output.ts";
import { renderJson } from "./print.ts";

export type DetachOption = { readonly detach?: true };

export const DETACH_FLAG = ["--detach", "do not wait for the job, only add it"] as const;

/** What a result does not say by itself, for standard error; null: nothing. */
type Hint<Result> = (result: Result) => string | null;

/**
 * Adds a job and follows it until it has ended, or says with `--detach` how to follow it. Throws `CommandError`
 * unless the job does what was asked.
 */
export const startJob = async <Data, Result>(
  type: JobType<Data, Result>,
  data: Data,
  options: JsonOption & DetachOption,
  deps: CommandDeps,
  hint: Hint<Result> = () => null,
): Promise<void> =>
  withJobClient(readQueueConfig(), async (jobs) => {
    const { id } = await jobs.add(type, data);
    await attend(jobs, { name: type.name, id }, options, deps, (result) => {
      // One of another version is printed as it is.
      const { success, data: known } = type.result.safeParse(result);
      return success ? hint(known) : null;
    });
  });

/** Follows a job that was added, or with `--detach` says how to. */
export const attend = async (
  jobs: Pick<JobClient, "follow" | "workers">,
  job: { readonly name: JobType<unknown, unknown>["name"]; readonly id: string },
  options: JsonOption & DetachOption,
  deps: CommandDeps,
  hint: Hint<unknown> = () => null,
): Promise<void> => {
  const json = options.json ?? false;
  if (options.detach === true) {
    deps.print(
      json ? renderJson({ id: job.id, queue: job.name }) : `${job.id}: follow it with ${howToFollow(job.id)}`,
    );
    return;
  }
  deps.say(`${job.id} is added; Ctrl-C leaves it alone, ${howToFollow(job.id)} looks at it again`);
  const ended = await followJob(jobs, job, deps);
  printEnded(ended, json, deps.print);
  const said = hint(ended.result);
  if (said !== null) deps.say(said);
};
