import { readFile } from "node:fs/promises";
import { text as textOf } from "node:stream/consumers";
import {
  type DataSubject,
  type DataSubjectRequestBody,
  dataSubjectOf,
  dataSubjectRequestSchema,
} from "@conversation-export/domain";
import { type Command, InvalidArgumentError } from "commander";
import type { z } from "zod";
import { matching } from "../commands/arguments.ts";
import { innermostMessage, usageError } from "../explain/explain.ts";

export const requestId = matching(
  /^[0-9a-f]{32}-\d{1,10}$/,
  "the id of an erasure request, as in its Location header",
);

const personIds = (text: string, before: readonly string[] = []): string[] => {
  if (text === "") throw new InvalidArgumentError("It must not be empty.");
  return [...before, text];
};

export const addPersonOptions = (command: Command): Command =>
  command
    .option("--email <address>", "the person's e-mail address")
    .option("--chatter-id <id>", "a chatter id of the person; may be repeated", personIds)
    .option("--end-user-id <id>", "an end user id of the person; may be repeated", personIds)
    .option(
      "--file <path>",
      "the body of an erasure request as JSON, - for standard input: keeps names out of the shell's history",
    );

/** `file`: path of a request body, `-` for standard input. */
export type SubjectOptions = {
  readonly email?: string;
  readonly chatterId?: readonly string[];
  readonly endUserId?: readonly string[];
  readonly file?: string;
};

const readSubjectFile = async (path: string): Promise<unknown> => {
  const where = path === "-" ? "standard input" : path;
  const text = await (path === "-" ? textOf(process.stdin) : readFile(path, "utf8")).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") throw usageError(`there is no file ${path}`);
      throw usageError(`${where} cannot be read: ${error.message}`);
    },
  );
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`${where} holds no JSON: ${innermostMessage(error)}`);
  }
};

const problemsOf = (error: z.ZodError): string =>
  error.issues.map(({ path, message }) => `${path.join(".") || "it"} ${message}`).join("; ");

/** Checks as export-api does. @throws CommandError */
export const subjectOf = async (options: SubjectOptions): Promise<DataSubject> => {
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
  if (!parsed.success) throw usageError(`this is no erasure request: ${problemsOf(parsed.error)}`);
  const subject = dataSubjectOf(parsed.data satisfies DataSubjectRequestBody);
  if (subject === undefined) {
    throw usageError("the request names nobody: it needs an email or an identifier");
  }
  return subject;
};
