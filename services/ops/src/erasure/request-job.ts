import { erasureJob, erasureJobId, type JobClient } from "@conversation-export/queue";
import type { DataSubjectRequest, RequestStore } from "@conversation-export/warehouse";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { followJob, howToFollow } from "../jobs/follow-job.ts";
import { printEnded } from "../jobs/job-output.ts";
import type { DetachOption } from "../jobs/start-job.ts";
import { renderColumns, renderJson } from "../output/print.ts";

const jobOf = (id: string): { readonly name: "erasure"; readonly id: string } => ({
  name: "erasure",
  id: erasureJobId(id),
});

export const requestFields = (request: DataSubjectRequest) => ({
  request_id: request.requestId,
  client_id: request.clientId,
  status: request.status,
  received_at: new Date(request.receivedAt).toISOString(),
  updated_at: new Date(request.updatedAt).toISOString(),
  job: jobOf(request.requestId).id,
});

export const queueRequest = async (
  jobs: JobClient,
  request: DataSubjectRequest,
  requests: RequestStore,
): Promise<void> => {
  const { clientId: client, requestId: id, status } = request;
  await jobs.add(erasureJob, { clientId: client, requestId: id }, { id: jobOf(id).id });
  if (status === "received") await requests.setStatus(client, id, "queued");
};

/** With `--detach` only says how. */
export const followRequest = async (
  jobs: JobClient,
  request: DataSubjectRequest,
  requests: RequestStore,
  options: DetachOption & JsonOption,
  deps: CommandDeps,
): Promise<void> => {
  const job = jobOf(request.requestId);
  const json = options.json ?? false;
  // The job queues a new request.
  const status = request.status === "received" ? "queued" : request.status;
  const { print } = deps;
  if (options.detach === true) {
    print(
      json
        ? renderJson(requestFields({ ...request, status }))
        : `${request.requestId} is ${status}: follow it with ${howToFollow(job.id)}`,
    );
    return;
  }
  deps.say(
    `request ${request.requestId} is ${status}; Ctrl-C does not stop it, ${howToFollow(job.id)} follows it again`,
  );
  const ended = await followJob(jobs, job, deps);
  if (ended.state !== "completed") return printEnded(ended, json, print);
  const after = (await requests.find(request.clientId, request.requestId)) ?? request;
  const view = { ...requestFields(after), result: ended.result };
  print(
    json
      ? renderJson(view)
      : renderColumns([
          ["request", after.requestId],
          ["status", after.status],
        ]),
  );
  if (!json) printEnded(ended, json, print);
  if (after.status === "running") {
    deps.say(
      "no list shows it any more; its rows are deleted by the next run, when the one under way has ended",
    );
  }
  if (after.status === "awaiting_approval") {
    deps.say(
      `it reaches very many records and waits: \`export-ops erase preview ${after.requestId}\`, then \`erase approve\` or \`erase refuse\``,
    );
  }
};
