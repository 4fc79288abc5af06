import { audited } from "../audit/audited.ts";
import {
  JOB_NAMES,
  JOB_STATES,
  type JobClient,
  type JobName,
  type JobState,
  type JobView,
} from "@conversation-export/queue";
import type { Command } from "commander";
import { jobId, listOf, wholeNumber } from "./arguments.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { readQueueConfig } from "../config.ts";
import { requireYes, YES_FLAG, type YesOption } from "../output/confirm.ts";
import { withJobClient } from "../connect/connections.ts";
import { CommandError } from "../explain/explain.ts";
import { followJob, howToFollow } from "../jobs/follow-job.ts";
import { jobFields, printEnded, renderHeld, renderJob, renderJobs } from "../jobs/job-output.ts";
import { renderJson } from "../output/print.ts";

const found = async (jobs: JobClient, id: string): Promise<JobView> => {
  const job = await jobs.find(id);
  if (job !== null) return job;
  throw new CommandError(
    `there is no job ${id}: \`export-ops jobs list\` shows the jobs; a job is removed some time after its end`,
  );
};

export const addJobCommands = (program: Command, deps: CommandDeps): void => {
  const { print } = deps;
  const withJobs = (work: (jobs: JobClient) => Promise<void>): Promise<void> =>
    withJobClient(readQueueConfig(deps.env), work);
  const changing = (
    command: Command,
    id: string,
    work: (client: JobClient, job: JobView) => Promise<void>,
  ): Promise<void> =>
    audited(command, deps, (report) =>
      withJobs(async (client) => {
        const job = await found(client, id);
        // The id need not name the queue.
        report({ queue: job.name });
        await work(client, job);
      }),
    );
  const jobs = program.command("jobs").addHelpText(
    "after",
    `
last_started_at is when a process last took the job, or a step of it, not when the job began.

Examples:
  export-ops jobs list --state active,waiting
  export-ops jobs list --queue backfill --json
  export-ops jobs show backfill-20261101T060000-1a2b3c
  export-ops jobs follow backfill-20261101T060000-1a2b3c
  export-ops jobs cancel backfill-20261101T060000-1a2b3c --yes
  export-ops jobs retry backfill-20261101T060000-1a2b3c
  export-ops jobs remove backfill-20261101T060000-1a2b3c --yes`,
  );

  jobs
    .command("list")
    .description("list the newest jobs")
    .option("--queue <list>", `only of these queues: ${JOB_NAMES.join(", ")}`, listOf(JOB_NAMES, "queue"))
    .option("--state <list>", `only in these states: ${JOB_STATES.join(", ")}`, listOf(JOB_STATES, "state"))
    .option("--limit <count>", "list at most this many", wholeNumber(1, 1_000), 50)
    .option("--json", "print JSON")
    .action((options: { queue?: JobName[]; state?: JobState[]; limit: number } & JsonOption) =>
      withJobs(async (client) => {
        const all = await client.list({
          limit: options.limit,
          ...(options.queue !== undefined && { names: options.queue }),
          ...(options.state !== undefined && { states: options.state }),
        });
        print(options.json === true ? renderJson(all.map(jobFields)) : renderJobs(all));
        for (const line of renderHeld(await client.heldSchedules())) deps.say(line);
      }),
    );

  jobs
    .command("show")
    .description("show one job in full")
    .argument("<job>", "its id", jobId)
    .option("--json", "print JSON")
    .action((id: string, { json }: JsonOption) =>
      withJobs(async (client) => {
        const job = await found(client, id);
        print(json === true ? renderJson(jobFields(job)) : renderJob(job));
      }),
    );

  jobs
    .command("follow")
    .description("show the progress of a job until it ends, then its result")
    .argument("<job>", "its id", jobId)
    .option("--json", "print JSON when it has ended")
    .action((id: string, { json = false }: { json?: boolean }) =>
      withJobs(async (client) => {
        const job = await found(client, id);
        printEnded(job.endedAt === null ? await followJob(client, job, deps) : job, json, print);
      }),
    );

  jobs
    .command("cancel")
    .description("stop a job at its next safe point; what it has done stays")
    .argument("<job>", "its id", jobId)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .action((id: string, options: YesOption & JsonOption, command: Command) => {
      requireYes(options, `this stops the job ${id}`);
      return changing(command, id, async (client, { name }) => {
        if ((await client.cancel(name, id)) !== "cancelling") {
          throw new CommandError(`the job ${id} has ended already: \`export-ops jobs show ${id}\` shows how`);
        }
        print(
          options.json === true
            ? renderJson({ id, queue: name, cancelling: true })
            : `${id} stops at its next safe point; work that ClickHouse has begun for it continues to its end`,
        );
      });
    });

  jobs
    .command("retry")
    .description("continue a failed or cancelled job from where it stopped")
    .argument("<job>", "its id", jobId)
    .option("--json", "print JSON")
    .action((id: string, { json }: JsonOption, command: Command) =>
      changing(command, id, async (client, { name, state }) => {
        if ((await client.retry(name, id)) !== "retried") {
          const what = state === "completed" ? "is done" : `is ${state}`;
          throw new CommandError(`the job ${id} ${what}, only a failed one can be retried`);
        }
        print(
          json === true
            ? renderJson({ id, queue: name, retried: true })
            : `${id} goes on: ${howToFollow(id)}`,
        );
      }),
    );

  jobs
    .command("remove")
    .description("remove a job that has ended, with its saved progress; what it has done stays")
    .argument("<job>", "its id", jobId)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .action((id: string, options: YesOption & JsonOption, command: Command) => {
      requireYes(options, `this removes the job ${id}, which cannot be retried afterwards`);
      return changing(command, id, async (client, { name, state, endedAt }) => {
        // It may have been retried since `found`.
        if (endedAt === null || (await client.remove(name, id)) === "active") {
          throw new CommandError(
            `the job ${id} has not ended, it is ${state}: \`export-ops jobs cancel ${id} --yes\` stops it`,
          );
        }
        print(options.json === true ? renderJson({ id, queue: name, removed: true }) : `${id} is removed`);
      });
    });
};
