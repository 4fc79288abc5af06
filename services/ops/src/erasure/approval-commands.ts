import type { DataSubjectRequest, RequestStore } from "@conversation-export/warehouse";
import type { Command } from "commander";
import { audited } from "../audit/audited.ts";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { readQueueConfig, readWarehouseConfig } from "../config.ts";
import { withJobClient, withWarehouse } from "../connect/connections.ts";
import { CommandError } from "../explain/explain.ts";
import { DETACH_FLAG, type DetachOption } from "../jobs/start-job.ts";
import { requireYes, YES_FLAG, type YesOption } from "../output/confirm.ts";
import { renderJson } from "../output/print.ts";
import { followRequest, queueRequest, requestFields } from "./request-job.ts";
import { storedRequests } from "./stored-requests.ts";
import { requestId } from "./subject.ts";

/** @throws CommandError */
const findWaiting = async (requests: RequestStore, id: string): Promise<DataSubjectRequest> => {
  const found = await requests.findAny(id);
  if (found === null) throw new CommandError(`there is no request ${id}`);
  if (found.status === "awaiting_approval") return found;
  throw new CommandError(`the request ${id} does not wait for approval: it is ${found.status}`);
};

export const addApprovalCommands = (erase: Command, deps: CommandDeps): void => {
  const { env, print, now } = deps;
  const withRequests = (work: (requests: RequestStore) => Promise<void>): Promise<void> =>
    withWarehouse(readWarehouseConfig(env), (session) => work(storedRequests(session, now)));

  erase
    .command("approve")
    .description("carry out a request that waits because it reaches very many records")
    .argument("<request-id>", "the request", requestId)
    .option(...DETACH_FLAG)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText("after", "\nLook first: export-ops erase preview <request-id>")
    .action(async (id: string, options: YesOption & DetachOption & JsonOption, command: Command) => {
      requireYes(options, `this erases all records that ${id} reaches, which cannot be undone`);
      const redis = readQueueConfig(env);
      const approve = (requests: RequestStore): Promise<void> =>
        withJobClient(redis, async (jobs) => {
          await jobs.checkServer();
          const found = await findWaiting(requests, id);
          await requests.setStatus(found.clientId, id, "approved");
          const approved = { ...found, status: "approved" } as const;
          await queueRequest(jobs, approved, requests);
          await followRequest(jobs, approved, requests, options, deps);
        });
      await audited(command, deps, () => withRequests(approve));
    });

  erase
    .command("refuse")
    .description("end a request that waits because it reaches very many records; nothing is erased")
    .argument("<request-id>", "the request", requestId)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .action(async (id: string, options: YesOption & JsonOption, command: Command) => {
      requireYes(options, `this ends ${id} for good, and its client sees that by its status`);
      const refuse = async (requests: RequestStore): Promise<void> => {
        const found = await findWaiting(requests, id);
        await requests.setStatus(found.clientId, id, "refused");
        const refused = (await requests.find(found.clientId, id)) ?? found;
        if (refused.status !== "refused")
          throw new CommandError(`the request ${id} cannot be refused any more: it is ${refused.status}`);
        print(options.json === true ? renderJson(requestFields(refused)) : `${id} is ${refused.status}`);
      };
      await audited(command, deps, () => withRequests(refuse));
    });
};
