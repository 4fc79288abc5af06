import { readFile } from "node:fs/promises";
import { text as textOf } from "node:stream/consumers";
import {
  type DataSubject,
  type DataSubjectRequestBody,
  dataSubjectOf,
  dataSubjectRequestSchema,
} from "@conversation-export/domain";
import { erasureJob, type JobClient } from "@conversation-export/queue";
import {
  createRequestStore,
  type DataSubjectRequest,
  type RequestStore,
} from "@conversation-export/warehouse";
import { type Command, InvalidArgumentError } from "commander";
import type { z } from "zod";
import { clientId, instant, matching } from "./arguments.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { readQueueConfig, readRequestSecret, readWarehouseConfig } from "./config.ts";
import { requireYes, YES_FLAG, type YesOption } from "./confirm.ts";
import { withJobClient, withStore } from "./connections.ts";
import { EXIT } from "./exit-code.ts";
import { CommandError, innermostMessage } from "./explain.ts";
import { followJob, howToFollow } from "./follow-job.ts";
import { printEnded } from "./job-output.ts";
import { renderColumns, renderJson } from "./print.ts";
import { findClient } from "./registered-client.ts";
import { DETACH_FLAG, type DetachOption, startJob } from "./start-job.ts";

type EraseOptions = {
  readonly client: string;
  readonly email?: string;
  readonly chatterId?: readonly string[];
  readonly endUserId?: readonly string[];
  readonly file?: string;
} & YesOption &
  DetachOption &
  JsonOption;

const requestId = matching(
  /^[0-9a-f]{32}-\d{1,9}$/,
  "the id of a data-subject request, as its Location header has it",
);

const personIds = (text: string, before: readonly string[] = []): string[] => {
  if (text === "") throw new InvalidArgumentError("It must not be empty.");
  return [...before, text];
};

const jobOf = (id: string): { readonly name: "erasure"; readonly id: string } => ({
  name: "erasure",
  id: `request-${id}`,
});

const fields = (request: DataSubjectRequest) => ({
  request_id: request.requestId,
  client_id: request.clientId,
  status: request.status,
  received_at: new Date(request.receivedAt).toISOString(),
  updated_at: new Date(request.updatedAt).toISOString(),
  job: jobOf(request.requestId).id,
});

const readSubjectFile = async (path: string): Promise<unknown> => {
  const where = path === "-" ? "standard input" : path;
  const wrong = (message: string) => new CommandError(message, { exitCode: EXIT.usage });
  const text = await (path === "-" ? textOf(process.stdin) : readFile(path, "utf8")).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") throw wrong(`there is no file ${path}`);
      throw wrong(`${where} cannot be read: ${error.message}`);
    },
  );
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrong(`${where} holds no JSON: ${innermostMessage(error)}`);
  }
};

const problemsOf = (error: z.ZodError): string =>
  error.issues.map(({ path, message }) => `${path.join(".") || "it"} ${message}`).join("; ");

/** Whom the options name, as a request to the interface would. */
const subjectOf = async (options: EraseOptions): Promise<DataSubject> => {
  const { email, chatterId, endUserId, file } = options;
  const body: unknown =
    file === undefined
      ? {
          type: "ERASURE",
          ...(email !== undefined && { email }),
          identifiers: [
            ...(chatterId ?? []).map((value) => ({ type: "chatter_id", value })),
            ...(endUserId ?? []).map((value) => ({ type: "end_user_id", value })),
          ],
        }
      : await readSubjectFile(file);
  const parsed = dataSubjectRequestSchema.safeParse(body, { reportInput: false });
  if (!parsed.success) {
    throw new CommandError(`this is no data-subject request: ${problemsOf(parsed.error)}`, {
      exitCode: EXIT.usage,
    });
  }
  const subject = dataSubjectOf(parsed.data satisfies DataSubjectRequestBody);
  if (subject === undefined) {
    throw new CommandError("the request names nobody: it needs an email or an identifier", {
      exitCode: EXIT.usage,
    });
  }
  return subject;
};

/** Erases a person, by a request as a customer would make it, or goes on with one. */
export const addEraseCommand = (program: Command, deps: CommandDeps): void => {
  const { print, now } = deps;

  const requireClient = async (id: string): Promise<void> => {
    // Records of a deleted client are still there.
    if ((await findClient(id, deps)) !== null) return;
    throw new CommandError(`there is no client ${id}: \`export-ops clients list\` shows those that exist`);
  };

  const queue = async (
    jobs: JobClient,
    request: DataSubjectRequest,
    requests: RequestStore,
  ): Promise<void> => {
    const { clientId: client, requestId: id, status } = request;
    await jobs.add(erasureJob, { clientId: client, requestId: id }, { id: jobOf(id).id });
    if (status === "received") await requests.setStatus(client, id, "queued");
  };

  const attendRequest = async (
    jobs: JobClient,
    request: DataSubjectRequest,
    requests: RequestStore,
    options: EraseOptions,
  ): Promise<void> => {
    const job = jobOf(request.requestId);
    const json = options.json ?? false;
    if (options.detach === true) {
      print(
        json
          ? renderJson(fields({ ...request, status: "queued" }))
          : `${request.requestId} is queued: follow it with ${howToFollow(job.id)}`,
      );
      return;
    }
    deps.say(
      `request ${request.requestId} is queued; Ctrl-C leaves it alone, ${howToFollow(job.id)} looks at it again`,
    );
    const ended = await followJob(jobs, job, deps);
    if (ended.state !== "completed") return printEnded(ended, json, print);
    const after = (await requests.find(request.clientId, request.requestId)) ?? request;
    const view = { ...fields(after), result: ended.result };
    print(
      json
        ? renderJson(view)
        : renderColumns([
            ["request", after.requestId],
            ["status", after.status],
          ]),
    );
    if (!json) printEnded(ended, json, print);
  };

  program
    .command("erase")
    .description("erase all records of a person, or go on with a request for it")
    .argument(
      "[request-id]",
      "a request that is there: tells its status, and with --yes goes on with it",
      requestId,
    )
    .requiredOption("--client <id>", "the client whose records they are", clientId)
    .option("--email <address>", "the person's e-mail address")
    .option("--chatter-id <id>", "a chatter id of the person; may be repeated", personIds)
    .option("--end-user-id <id>", "an end user id of the person; may be repeated", personIds)
    .option(
      "--file <path>",
      "the body of a data-subject request as JSON, - for standard input: keeps names out of the shell's history",
    )
    .option(...DETACH_FLAG)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
What is erased cannot be brought back, by a replay or a backfill neither. Records that are created after the request
are kept. Dead letters stay for as long as Kafka keeps them.

Examples:
  export-ops erase --client acme --email jane@example.com --yes
  export-ops erase --client acme --chatter-id 5f1c --chatter-id 77ab --yes --detach
  export-ops erase --client acme --end-user-id 64f1c0 --yes
  echo '{"type":"ERASURE","email":"jane@example.com"}' | export-ops erase --client acme --file - --yes
  export-ops erase 0123456789abcdef0123456789abcdef-0 --client acme`,
    )
    .action(async (id: string | undefined, options: EraseOptions, command: Command) => {
      const { client, email, chatterId, endUserId, file } = options;
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
      const warehouse = readWarehouseConfig();
      const redis = readQueueConfig();
      // Only a new request needs the secret, which makes its id.
      const idSecret = id === undefined ? readRequestSecret() : "";
      const subject = id === undefined ? await subjectOf(options) : undefined;
      await requireClient(client);
      const open = () =>
        createRequestStore({ ...warehouse, application: "export-ops", now: () => now().getTime(), idSecret });
      await withStore(warehouse, open, async (requests) => {
        const found = id === undefined ? null : await requests.find(client, id);
        if (id !== undefined && found === null) {
          throw new CommandError(`the client ${client} has no request ${id}`);
        }
        if (found?.status === "failed" && options.yes === true) {
          throw new CommandError(
            `the request ${found.requestId} has failed and stays so: make a new one by whom it is about`,
          );
        }
        if (found !== null && (options.yes !== true || found.status === "completed")) {
          const view = fields(found);
          const rows = Object.entries(view).map(([name, value]) => [name.replaceAll("_", " "), value]);
          print(options.json === true ? renderJson(view) : renderColumns(rows));
          return;
        }
        await withJobClient(redis, async (jobs) => {
          // First, so that no request is left behind that nobody works on.
          await jobs.counts();
          const request = found ?? (await requests.open(client, subject as DataSubject));
          await queue(jobs, request, requests);
          await attendRequest(jobs, request, requests, options);
        });
      });
    });
};

/** Erases what was erased before: a backup that was restored brings it back. */
export const addEraseAgainCommand = (program: Command, deps: CommandDeps): void => {
  program
    .command("erase-again")
    .description("after a backup was restored: erase what was erased since it was made")
    .requiredOption("--since <instant>", "when the backup of the records began", instant(deps.now))
    .option("--dry-run", "only report what would be erased")
    .option(...DETACH_FLAG)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
It looks for everything that was suppressed since then, or belongs to a request that was completed since: ids of
conversations and messages, and persons by the identifiers that stored records name. Records that were created after the
request are kept. Too early an instant costs time and does no harm. Requests that are not completed are done as well. A
dry run needs no --yes.

Examples:
  export-ops erase-again --since 2026-11-01T02:00:00Z --dry-run
  export-ops erase-again --since 2026-11-01T02:00:00Z --yes`,
    )
    .action((options: { since: string; dryRun?: true } & YesOption & DetachOption & JsonOption) => {
      const { since, dryRun = false } = options;
      if (!dryRun) requireYes(options, "this erases records for good; --dry-run shows how many");
      return startJob(
        erasureJob,
        { clientId: null, requestId: null, again: { since, dryRun } },
        options,
        deps,
      );
    });
};
