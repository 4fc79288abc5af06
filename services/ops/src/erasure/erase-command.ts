import { audited } from "../audit/audited.ts";
import type { DataSubject } from "@conversation-export/domain";
import { createClientStore, type DataSubjectRequest } from "@conversation-export/warehouse";
import type { Command } from "commander";
import { requireKnown } from "../access/registered-client.ts";
import { clientId } from "../commands/arguments.ts";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { readQueueConfig, readRequestSecret, readWarehouseConfig } from "../config.ts";
import { withJobClient, withWarehouse } from "../connect/connections.ts";
import { CommandError } from "../explain/explain.ts";
import { DETACH_FLAG, type DetachOption } from "../jobs/start-job.ts";
import { requireYes, YES_FLAG, type YesOption } from "../output/confirm.ts";
import { renderColumns, renderJson } from "../output/print.ts";
import { addApprovalCommands } from "./approval-commands.ts";
import { storedRequests } from "./stored-requests.ts";
import { addPersonOptions, requestId, type SubjectOptions, subjectOf } from "./subject.ts";
import { addPreviewCommand } from "./preview-command.ts";
import { followRequest, queueRequest, requestFields } from "./request-job.ts";

type EraseOptions = {
  readonly client?: string;
} & SubjectOptions &
  YesOption &
  DetachOption &
  JsonOption;

export const addEraseCommand = (program: Command, deps: CommandDeps): void => {
  const { env, print, now } = deps;

  const erase = program
    .command("erase")
    // A subcommand may have options of the same names.
    .enablePositionalOptions()
    .argument("[request-id]", "an existing request: show its status, with --yes continue it", requestId)
    .option("--client <id>", "the client that owns the records", clientId);
  addPersonOptions(erase)
    .option(...DETACH_FLAG)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Erased records cannot be brought back, not even by a replay or a backfill. Records created after the request are kept.
Dead letters stay until Kafka deletes them.

Examples:
  export-ops erase --client acme --email jane@example.com --yes
  export-ops erase --client acme --chatter-id 5f1c --chatter-id 77ab --yes --detach
  export-ops erase --client acme --end-user-id 64f1c0 --yes
  echo '{"type":"ERASURE","email":"jane@example.com"}' | export-ops erase --client acme --file - --yes
  export-ops erase 0123456789abcdef0123456789abcdef-0 --client acme
  export-ops erase preview --client acme --email jane@example.com
  export-ops erase approve 0123456789abcdef0123456789abcdef-0 --yes`,
    )
    .action(async (id: string | undefined, options: EraseOptions, command: Command) => {
      const { client, email, chatterId, endUserId, file } = options;
      // Subcommands would inherit it as required.
      if (client === undefined) return command.error("error: required option '--client <id>' not specified");
      const named = email !== undefined || chatterId !== undefined || endUserId !== undefined;
      if (id === undefined && !named && file === undefined) {
        return command.error(
          "error: say who is to be erased: --email, --chatter-id, --end-user-id or --file, or the id of a request",
        );
      }
      if ((id !== undefined && (named || file !== undefined)) || (named && file !== undefined)) {
        return command.error("error: give one of: the id of a request, --email and the ids, or --file");
      }
      if (id === undefined) {
        requireYes(options, `this erases all records of a person at ${client}, which cannot be undone`);
      }
      const warehouse = readWarehouseConfig(env);
      const redis = readQueueConfig(env);
      const secret = id === undefined ? readRequestSecret(env) : undefined;
      const subject = id === undefined ? await subjectOf(options) : undefined;
      const erase = () =>
        withWarehouse(warehouse, async (session) => {
          // Records of a deleted client still exist.
          await requireKnown(createClientStore({ session, now: () => now().getTime() }), client);
          const requests = storedRequests(session, now, secret);
          const found = id === undefined ? null : await requests.find(client, id);
          if (id !== undefined && found === null) {
            throw new CommandError(`the client ${client} has no request ${id}`);
          }
          if (found !== null && options.yes === true) requireOpen(found);
          if (found !== null && (options.yes !== true || found.status === "completed")) {
            const view = requestFields(found);
            const rows = Object.entries(view).map(([name, value]) => [name.replaceAll("_", " "), value]);
            print(options.json === true ? renderJson(view) : renderColumns(rows));
            return;
          }
          await withJobClient(redis, async (jobs) => {
            // First, so that no request is stored without a job.
            await jobs.checkServer();
            const request = found ?? (await requests.open(client, subject as DataSubject));
            await queueRequest(jobs, request, requests);
            await followRequest(jobs, request, requests, options, deps);
          });
        });
      // Without --yes a request is only shown.
      await (options.yes === true ? audited(command, deps, erase) : erase());
    });
  addPreviewCommand(erase, deps);
  addApprovalCommands(erase, deps);
};

/** @throws CommandError */
const requireOpen = ({ requestId: id, status }: DataSubjectRequest): void => {
  if (status === "failed" || status === "refused") {
    throw new CommandError(
      `the request ${id} has ${status === "failed" ? "failed for good" : "been refused"}: make a new one for the same person`,
    );
  }
  if (status === "awaiting_approval") {
    throw new CommandError(
      `the request ${id} waits for approval: look with \`export-ops erase preview ${id}\`, then \`erase approve\` or \`erase refuse\``,
    );
  }
};
