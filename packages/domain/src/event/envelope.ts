import { z } from "zod";
import { isObject } from "./json-object.ts";
import { memberTexts } from "./json-text.ts";
import { type Rejected, type RejectionReason, rejected } from "./outcome.ts";
import { isAcceptedInstant, isTimestampForm, type Micros, parseTimestamp } from "./timestamp.ts";

const attribute = z
  .string()
  .min(1)
  .max(1_000)
  .refine((text) => text.isWellFormed(), "holds half a surrogate pair");

/** CloudEvents 1.0 attributes of every event, with the extension `clientid`. */
export const envelopeSchema = z.object({
  specversion: z.literal("1.0"),
  id: attribute.describe("Unique per event and source"),
  source: z.string().min(1).describe("URI reference of the producer"),
  type: z.string().min(1).describe("What was exported"),
  time: attribute.describe("Instant of the export, ISO 8601: the version of the record"),
  subject: z.string().nullish().describe("The record's id; when it is given it must be equal"),
  clientid: attribute.describe("The client whose data it is"),
  datacontenttype: z.string().nullish().describe("application/json"),
});

/** A header of the bus: absent, without a value, one value, or several. */
export type BusHeader = { toString(): string } | null | undefined;
export type BusHeaders = Readonly<Record<string, BusHeader>>;

/** What the attributes of an event tell. */
export type Attributes = {
  readonly type: string;
  readonly clientId: string;
  /** The record's id; null when the producer leaves it out. */
  readonly subject: string | null;
  readonly exportedAt: Micros;
};

export type Envelope = {
  readonly attributes: Attributes;
  readonly data: Record<string, unknown>;
  /** The text of `data`, from which parts are cut unchanged. */
  readonly dataText: () => string;
};

const BINARY_ATTRIBUTES = ["specversion", "id", "source", "type", "time", "subject", "clientid"] as const;

/** The first problem that zod found, as `field: what is wrong`. */
export function firstProblem(error: z.ZodError): string {
  const issue = error.issues[0];
  if (issue === undefined) return "invalid";
  const path = issue.path.map(String).join(".");
  return path === "" ? issue.message : `${path}: ${issue.message}`;
}

/** The rejection of a text that is no instant: a date that does not exist has a reason of its own. */
export function badTimestamp(text: string, field: string, malformed: RejectionReason): Rejected {
  if (isTimestampForm(text)) return rejected("date_out_of_range", `${field}: there is no such date or time`);
  return rejected(malformed, `${field} is not an ISO 8601 date-time`);
}

/** Reads the instant among the attributes of an event. */
function instantOf({ type, clientid, subject, time }: z.infer<typeof envelopeSchema>): Attributes | Rejected {
  const exportedAt = parseTimestamp(time);
  if (exportedAt === undefined) return badTimestamp(time, "time", "invalid_time");
  if (!isAcceptedInstant(exportedAt)) return rejected("date_out_of_range", "time");
  return { type, clientId: clientid, subject: subject ?? null, exportedAt };
}

/** The attributes of an event; undefined when they break a rule. */
export function validAttributes(given: Readonly<Record<string, unknown>>): Attributes | undefined {
  const checked = envelopeSchema.safeParse(given);
  if (!checked.success) return undefined;
  const attributes = instantOf(checked.data);
  return "kind" in attributes ? undefined : attributes;
}

/** The attributes in the headers of an event in binary mode; null: it is structured. */
export function binaryAttributes(headers: BusHeaders): Readonly<Record<string, unknown>> | null {
  if (headers["ce_specversion"] === undefined) return null;
  const contentType = headers["content-type"]?.toString() ?? "";
  if (contentType.startsWith("application/cloudevents")) return null;
  return Object.fromEntries(BINARY_ATTRIBUTES.map((name) => [name, headers[`ce_${name}`]?.toString()]));
}

/**
 * Reads a CloudEvent from the value and headers of one bus message: structured mode when the content type is
 * `application/cloudevents+json`, binary mode when a `ce_specversion` header is there (CloudEvents Kafka
 * binding 1.0, section 3). A value without either is read as structured.
 */
export function readEnvelope(text: string, headers: BusHeaders): Envelope | Rejected {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return rejected("invalid_envelope", "the value is not JSON");
  }
  if (!isObject(parsed)) return rejected("invalid_envelope", "the value is not a JSON object");
  const inHeaders = binaryAttributes(headers);
  const checked = envelopeSchema.safeParse(inHeaders ?? parsed);
  if (!checked.success) return rejected("invalid_envelope", firstProblem(checked.error));
  const data = inHeaders === null ? parsed["data"] : parsed;
  if (!isObject(data)) {
    const hint = "data_base64" in parsed ? "data_base64 is not supported, data must be" : "data is not";
    return rejected("invalid_envelope", `${hint} a JSON object`);
  }
  const attributes = instantOf(checked.data);
  if ("kind" in attributes) return attributes;
  const dataText = inHeaders === null ? () => memberTexts(text).get("data") ?? "{}" : () => text;
  return { attributes, data, dataText };
}
