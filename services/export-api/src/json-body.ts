import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { badRequest, contentTooLarge, unsupportedMediaType } from "./api-error.ts";
import { readQuery } from "./query-string.ts";

/** Section 8 of the specification: 4.0 MB. */
export const MAX_BODY_BYTES = 4_000_000;
/** Commas and opening brackets: more than any body needs, and few enough that none blocks the process for long. */
export const MAX_BODY_VALUES = 100_000;
const MAX_NAME = 100;

const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*(?:utf-8|"utf-8")\s*)?$/i;
const FORBIDDEN_NAME = "__proto__";

const requireJson = ({ "content-type": type, "content-encoding": encoding }: IncomingMessage["headers"]) => {
  if (type === undefined) throw unsupportedMediaType("Content-Type: is required");
  if (!JSON_TYPE.test(type.trim())) {
    throw unsupportedMediaType("Content-Type: must be application/json, in UTF-8");
  }
  if (encoding !== undefined && encoding.trim().toLowerCase() !== "identity") {
    throw unsupportedMediaType("Content-Encoding: must be absent or identity");
  }
};

/** All bytes of the body; rejects at the first byte over the limit and leaves the rest where it is. */
const readBytes = (request: IncomingMessage, limit: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;

    const settle = (end: () => void): void => {
      request.off("data", take).off("end", whole).off("close", brokenOff);
      request.pause();
      end();
    };
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > limit) settle(() => reject(contentTooLarge(limit, length)));
      else chunks.push(chunk);
    };
    const whole = (): void => settle(() => resolve(Buffer.concat(chunks, length)));
    const brokenOff = (): void => settle(() => reject(badRequest(["body: broke off before its end"])));

    // Stays: an error after the decision must not end the process. The close behind it tells the rest.
    request.on("error", () => undefined);
    if (request.destroyed && !request.readableEnded) brokenOff();
    else request.on("data", take).once("end", whole).once("close", brokenOff);
  });

const [COMMA, BRACKET, BRACE] = Buffer.from(",[{");

/** Counts marks within texts too: it is a bound, and needs no parser. */
const holdsTooMany = (bytes: Buffer): boolean => {
  let marks = 0;
  for (const byte of bytes) if (byte === COMMA || byte === BRACKET || byte === BRACE) marks += 1;
  return marks > MAX_BODY_VALUES;
};

/** true when an object anywhere in the value has the name; without recursion, since nesting may be deep. */
const holdsName = (value: unknown, name: string): boolean => {
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const one = waiting.pop();
    if (typeof one !== "object" || one === null) continue;
    if (!Array.isArray(one) && Object.hasOwn(one, name)) return true;
    for (const inner of Object.values(one)) {
      if (typeof inner === "object" && inner !== null) waiting.push(inner);
    }
  }
  return false;
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
    value = JSON.parse(text);
  } catch {
    throw badRequest(["body: is not JSON"]);
  }
  // Harmless as it is, and a trap for whoever copies it.
  if (holdsName(value, FORBIDDEN_NAME)) {
    throw badRequest([`body: ${FORBIDDEN_NAME} is not allowed as a name`]);
  }
  return value;
};

/**
 * Reads a JSON body. Throws `ApiError`: 415 for another media type, charset or content coding, 413 above `limitBytes`
 * (announced or arrived; the rest is not read, so the connection has to be closed), 400 for what is not UTF-8 or
 * JSON, breaks off, or holds more than `MAX_BODY_VALUES` commas and opening brackets.
 */
export const readJsonBody = async (
  request: IncomingMessage,
  limitBytes: number = MAX_BODY_BYTES,
): Promise<unknown> => {
  requireJson(request.headers);
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > limitBytes) throw contentTooLarge(limitBytes, announced);
  return parse(await readBytes(request, limitBytes));
};

const shorten = (name: string): string => (name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name);

const pathOf = (path: readonly PropertyKey[]): string => path.map((part) => shorten(String(part))).join(".");

/** One line for each issue, as `recipient.meta_fields.phone_number: must be …`; names fields, never their values. */
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

/** The body as its schema gives it. Throws `ApiError` 400, which names every wrong or unknown field. */
export const checkBody = <S extends z.ZodType>(schema: S, value: unknown): z.output<S> => {
  const result = schema.safeParse(value);
  if (!result.success) throw badRequest(problemsOf(result.error));
  return result.data;
};

/** Throws `ApiError` 400 when the request target carries query parameters; the operation has none. */
export const requireNoQuery = (target: string): void => {
  const { pairs, problems } = readQuery(target);
  const names = new Set(pairs.map(([name]) => name));
  for (const name of names) problems.push(`${shorten(name)}: unknown parameter`);
  if (problems.length > 0) throw badRequest(problems);
};
