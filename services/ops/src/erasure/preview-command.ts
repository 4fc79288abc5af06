import { randomUUID } from "node:crypto";
import { FINISHED_STATUSES, LIST_NAMES } from "@conversation-export/domain";
import {
  createErasurePreview,
  type DueRequest,
  type Session,
  subjectsOfRequest,
} from "@conversation-export/warehouse";
import type { Command } from "commander";
import { clientId } from "../commands/arguments.ts";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { readServiceSettings, readWarehouseConfig } from "../config.ts";
import { withWarehouse } from "../connect/connections.ts";
import { CommandError } from "../explain/explain.ts";
import { renderColumns, renderJson } from "../output/print.ts";
import { storedRequests } from "./stored-requests.ts";
import { addPersonOptions, requestId, type SubjectOptions, subjectOf } from "./subject.ts";

const iso = (ms: number): string => new Date(ms).toISOString();

type PreviewOptions = { readonly client?: string } & SubjectOptions & JsonOption;

/** By keys that are removed again. */
const countReach = async (session: Session, request: DueRequest) => {
  const store = createErasurePreview({ session });
  const run = { id: randomUUID(), erases: false };
  try {
    await store.note(run, subjectsOfRequest({ ...request, requestId: `preview/${run.id}` }));
    await store.collect(run);
    const [found, rows] = [await store.count(run), await store.remaining(run)];
    return { found, rows, stored: await store.storedRecords(request.clientId) };
  } finally {
    await store.forget(run, new AbortController().signal);
  }
};

export const addPreviewCommand = (erase: Command, deps: CommandDeps): void => {
  const { env, print, now } = deps;
  const preview = erase
    .command("preview")
    .description("count what a request would erase; changes nothing")
    .argument("[request-id]", "an open request", requestId)
    .option("--client <id>", "the client that owns the records", clientId);
  addPersonOptions(preview)
    .option("--json", "print JSON")
    .action(async (id: string | undefined, options: PreviewOptions, command: Command) => {
      const { client, email, chatterId, endUserId, file } = options;
      const isNamed = [email, chatterId, endUserId, file].some((one) => one !== undefined);
      if ((id === undefined) !== isNamed) {
        return command.error("error: give one of: the id of a request, or who is to be erased");
      }
      if (id === undefined && client === undefined) {
        return command.error("error: required option '--client <id>' not specified");
      }
      const subject = id === undefined ? await subjectOf(options) : undefined;
      await withWarehouse(readWarehouseConfig(env), async (session) => {
        const requests = storedRequests(session, now);
        const given = {
          clientId: client ?? "",
          requestId: "preview",
          subject,
          status: "received" as const,
          receivedAt: now().getTime(),
        };
        const request = id === undefined ? given : await requests.findAny(id);
        if (request?.subject === undefined) throw new CommandError(`there is no request ${id ?? ""}`);
        if (FINISHED_STATUSES.includes(request.status))
          throw new CommandError(`the request ${id ?? ""} is ${request.status}: only open ones are counted`);
        const { found, rows, stored } = await countReach(session, { ...request, subject: request.subject });
        const records = LIST_NAMES.reduce((sum, list) => sum + found[list], 0);
        const asked = id !== undefined && {
          received: iso(request.receivedAt),
          due: iso(request.receivedAt + readServiceSettings(env).erasureDeadlineMs),
        };
        const view = {
          client_id: request.clientId,
          ...(asked && { received_at: asked.received, due_at: asked.due }),
          found,
          rows,
          records,
          stored_records: stored,
        };
        const share = stored === 0 ? 0 : (100 * records) / stored;
        print(
          options.json === true
            ? renderJson(view)
            : renderColumns([
                ["client", view.client_id],
                ...Object.entries(asked),
                ["records", `${records} of about ${stored} (${share.toFixed(2)} %)`],
                ...LIST_NAMES.map((list): [string, number] => [list.replace("_", " "), found[list]]),
                ...Object.entries(rows).map(([table, count]) => [`rows of ${table}`, count]),
              ]),
        );
      });
    });
};
