import type { JobClient, JobType } from "@conversation-export/queue";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { readQueueConfig } from "../config.ts";
import { withJobClient } from "../connect/connections.ts";
import { followJob, howToFollow } from "./follow-job.ts";
import { printEnded } from "./job-output.ts";
import { renderJson } from "../output/print.ts";

export type DetachOption = { readonly detach?: true };

export const DETACH_FLAG = ["--detach", "add the job without waiting for it"] as const;

/** null: none. */
type Hint<Result> = (result: Result) => string | null;

/** With `--detach` only says how to follow. @throws CommandError unless completed */
export const startJob = async <Data, Result>(
  type: JobType<Data, Result>,
  data: Data,
  options: JsonOption & DetachOption,
  deps: CommandDeps,
  hint: Hint<Result> = () => null,
): Promise<void> =>
  withJobClient(readQueueConfig(deps.env), async (jobs) => {
    const { id } = await jobs.add(type, data);
    await followToEnd(jobs, { name: type.name, id }, options, deps, (result) => {
      // It may be of another version.
      const { success, data: known } = type.result.safeParse(result);
      return success ? hint(known) : null;
    });
  });

export const followToEnd = async (
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
  deps.say(`${job.id} is added; Ctrl-C does not stop it, ${howToFollow(job.id)} follows it again`);
  const ended = await followJob(jobs, job, deps);
  printEnded(ended, json, deps.print);
  const said = hint(ended.result);
  if (said !== null) deps.say(said);
};
