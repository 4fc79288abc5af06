import type { IncomingMessage } from "node:http";
import { parseExactly, repeatedKeys } from "@conversation-export/domain";
import type { FastifyReply } from "fastify";
import { scan } from "secure-json-parse";
import type { z } from "zod";
import { ApiError, badRequest, contentTooLarge, unsupportedMediaType } from "./api-error.ts";
import { readQuery } from "../parameters/query-string.ts";

/** Specification, section 8: 4.0 MB. */
export const MAX_BODY_BYTES = 4_000_000;
/** Commas and opening brackets: few enough to parse quickly. */
export const MAX_BODY_VALUES = 100_000;
const MAX_NAME = 100;
/** No known field lies deeper. */
const MAX_NAMED_DEPTH = 5;

const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*(?:utf-8|"utf-8")\s*)?$/i;

const requireJson = ({ "content-type": type, "content-encoding": encoding }: IncomingMessage["headers"]) => {
  if (type === undefined) throw unsupportedMediaType("Content-Type: is required");
  if (!JSON_TYPE.test(type.trim())) {
    throw unsupportedMediaType("Content-Type: must be application/json, in UTF-8");
  }
  if (encoding !== undefined && encoding.trim().toLowerCase() !== "identity") {
    throw unsupportedMediaType("Content-Encoding: must be absent or identity");
  }
};

/** Leaves the rest unread. */
const readBytes = async (request: IncomingMessage, limit: number): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let length = 0;
  // A later connection error must not end the process.
  request.on("error", () => undefined);
  try {
    // The socket still has to carry the answer.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      const bytes = chunk as Buffer;
      length += bytes.length;
      if (length > limit) throw contentTooLarge(limit, length);
      chunks.push(bytes);
    }
  } catch (error) {
    throw error instanceof ApiError ? error : badRequest(["body: broke off before its end"]);
  }
  return Buffer.concat(chunks, length);
};

const [COMMA, BRACKET, BRACE] = Buffer.from(",[{");

/** Marks inside texts count too. */
const holdsTooMany = (bytes: Buffer): boolean => {
  let marks = 0;
  for (const byte of bytes) if (byte === COMMA || byte === BRACKET || byte === BRACE) marks += 1;
  return marks > MAX_BODY_VALUES;
};

const parse = (bytes: Buffer): unknown => {
  if (bytes.length === 0) throw badRequest(["body: is required"]);
  if (holdsTooMany(bytes)) throw badRequest(["body: has too many values"]);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw badRequest(["body: is not UTF-8"]);
  }
  let value: unknown;
  try {
    value = parseExactly(text, MAX_NAMED_DEPTH);
  } catch {
    throw badRequest(["body: is not JSON"]);
  }
  // Harmless here, but copying such an object sets its prototype.
  if (scan({ value }, { safe: true, constructorAction: "ignore" }) === null) {
    throw badRequest(["body: __proto__ is not allowed as a name"]);
  }
  // The last one would count here, the first one may elsewhere.
  const repeated = repeatedKeys(text).map(
    (path) => `${pathOf(path.slice(0, MAX_NAMED_DEPTH))}: is given twice`,
  );
  if (repeated.length > 0) throw badRequest(repeated);
  return value;
};

/**
 * Fastify's parser would precede the key check.
 * @throws ApiError 415, 413 (the connection must close) or 400
 */
export const readJsonBody = async (request: IncomingMessage, limit = MAX_BODY_BYTES): Promise<unknown> => {
  requireJson(request.headers);
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > limit) throw contentTooLarge(limit, announced);
  return parse(await readBytes(request, limit));
};

const shorten = (name: string): string => (name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name);

const pathOf = (path: readonly PropertyKey[]): string => path.map((part) => shorten(String(part))).join(".");

/** Never with a value. */
const problemsOf = (error: z.ZodError): string[] =>
  error.issues.flatMap((issue) => {
    const path = pathOf(issue.path);
    if (issue.code !== "unrecognized_keys") return [`${path === "" ? "body" : path}: ${messageOf(issue)}`];
    return issue.keys.map((key) => `${path === "" ? "" : `${path}.`}${shorten(key)}: unknown field`);
  });

const messageOf = (issue: z.core.$ZodIssue): string => {
  if (issue.code !== "invalid_type") return issue.message;
  if (issue.message.endsWith("received undefined")) return "is required";
  const { expected } = issue;
  return `must be ${/^[aeiou]/.test(expected) ? "an" : "a"} ${expected}`;
};

/** @throws ApiError 400 that names every wrong or unknown field */
export const checkBody = <S extends z.ZodType>(schema: S, value: unknown): z.output<S> => {
  const result = schema.safeParse(value);
  if (!result.success) throw badRequest(problemsOf(result.error));
  return result.data;
};

/** @throws ApiError 400 for any parameter */
export const requireNoQuery = (target: string): void => {
  const { pairs, problems } = readQuery(target);
  const names = new Set(pairs.map(([name]) => name));
  for (const name of names) problems.push(`${shorten(name)}: unknown parameter`);
  if (problems.length > 0) throw badRequest(problems);
};

export const sendJson = (reply: FastifyReply, status: number, value: unknown): void => {
  // A buffer: Fastify adds a charset to JSON text.
  void reply
    .code(status)
    .header("content-type", "application/json")
    .send(Buffer.from(JSON.stringify(value)));
};
