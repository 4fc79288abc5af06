import type { JobClient, JobType } from "@conversation-export/queue";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { readQueueConfig } from "./config.ts";
import { withJobClient } from "./connections.ts";
import { followJob, howToFollow } from "./follow-job.ts";
import { printEnded } from "./job-output.ts";
import { renderJson } from "./print.ts";

export type DetachOption = { readonly detach?: true };

export const DETACH_FLAG = ["--detach", "do not wait for the job, only add it"] as const;

/**
 * Adds a job and follows it until it has ended, or says with `--detach` how to follow it. Throws `CommandError`
 * unless the job does what was asked.
 */
export const startJob = async <Data, Result>(
  type: JobType<Data, Result>,
  data: Data,
  options: JsonOption & DetachOption,
  deps: CommandDeps,
): Promise<void> =>
  withJobClient(readQueueConfig().redisUrl, async (jobs) => {
    const { id } = await jobs.add(type, data);
    await attend(jobs, { name: type.name, id }, options, deps);
  });

/** Follows a job that was added, or with `--detach` says how to. */
export const attend = async (
  jobs: Pick<JobClient, "follow">,
  job: { readonly name: JobType<unknown, unknown>["name"]; readonly id: string },
  options: JsonOption & DetachOption,
  deps: CommandDeps,
): Promise<void> => {
  const json = options.json ?? false;
  if (options.detach === true) {
    deps.print(
      json ? renderJson({ id: job.id, queue: job.name }) : `${job.id}: follow it with ${howToFollow(job.id)}`,
    );
    return;
  }
  deps.say(`${job.id} is added; Ctrl-C leaves it alone, ${howToFollow(job.id)} looks at it again`);
  printEnded(await followJob(jobs, job, deps), json, deps.print);
};
