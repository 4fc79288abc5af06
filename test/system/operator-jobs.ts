import { createJobClient, type JobClient, type JobType } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";

/** Adds and follows jobs, as operators do. */
export const startJobClient = async (url: string): Promise<JobClient> => {
  const client = createJobClient({ url, log: createLogger({ service: "test", level: "error" }) });
  await client.start();
  return client;
};

/** Throws the reason of a job that is not completed. */
export const resultOfJob = async <Data, Result>(
  client: JobClient,
  { name, result }: JobType<Data, Result>,
  id: string,
): Promise<Result> => {
  for await (const view of client.follow(name, id)) {
    if (view.state === "failed") throw new Error(`${name}: ${view.reason}`);
    if (view.state === "completed") return result.parse(view.result);
  }
  throw new Error(`the job ${id} does not end`);
};

export const workOff = async <Data, Result>(
  client: JobClient,
  type: JobType<Data, Result>,
  data: Data,
): Promise<Result> => resultOfJob(client, type, (await client.add(type, data)).id);
