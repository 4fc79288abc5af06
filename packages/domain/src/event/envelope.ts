import { z } from "zod";
import { type BusHeaders, headersRejected, headerText } from "./headers.ts";
import { isObject } from "./json-object.ts";
import { memberTexts } from "./json-text.ts";
import { type Rejected, rejected } from "./outcome.ts";
import { detailOf, problemsOf } from "./problems.ts";
import { readInstant } from "./read-instant.ts";
import type { Micros } from "./timestamp.ts";

const attribute = z
  .string()
  .min(1)
  .max(1_000)
  .refine((text) => text.isWellFormed(), "holds half a surrogate pair");

/** The type of a content in small letters, without its parameters. */
const mediaTypeOf = (contentType: string): string => contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";

/** CloudEvents 1.0 attributes of every event, with the extension `clientid`. */
export const envelopeSchema = z.object({
  specversion: z.literal("1.0"),
  id: attribute.describe("Unique per event and source"),
  source: z.string().min(1).describe("URI reference of the producer"),
  type: z.string().min(1).describe("What was exported"),
  time: attribute.describe("Instant of the export, ISO 8601: the version of the record"),
  subject: z.string().nullish().describe("The record's id; when it is given it must be equal"),
  clientid: attribute.describe("The client whose data it is"),
  datacontenttype: z
    .string()
    .refine((type) => mediaTypeOf(type) === "application/json", "is not application/json")
    .nullish()
    .describe("application/json"),
});

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

type HeaderAttributes = {
  [name in (typeof BINARY_ATTRIBUTES)[number] | "datacontenttype"]?: string | null | undefined;
};

/** Reads the instant among the attributes of an event. */
function instantOf({ type, clientid, subject, time }: z.infer<typeof envelopeSchema>): Attributes | Rejected {
  const exportedAt = readInstant(time, "time", "invalid_time");
  if (typeof exportedAt !== "number") return exportedAt;
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
export function binaryAttributes(headers: BusHeaders): Readonly<HeaderAttributes> | null | Rejected {
  const contentType = headerText(headers["content-type"]);
  const bad = contentType === undefined ? ["content-type"] : [];
  const isStructured =
    headers["ce_specversion"] === undefined ||
    mediaTypeOf(contentType ?? "").startsWith("application/cloudevents");
  const attributes: HeaderAttributes = { datacontenttype: contentType === "" ? null : contentType };
  for (const name of isStructured ? [] : BINARY_ATTRIBUTES) {
    const text = headerText(headers[`ce_${name}`]);
    if (text === undefined) bad.push(`ce_${name}`);
    else if (text !== null) attributes[name] = text;
  }
  if (bad.length > 0) return headersRejected(bad);
  if (isStructured) return null;
  return attributes;
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
  if (inHeaders !== null && "kind" in inHeaders) return inHeaders;
  const given: Readonly<Record<string, unknown>> = inHeaders ?? parsed;
  const checked = envelopeSchema.safeParse(given);
  const data = inHeaders === null ? parsed["data"] : parsed;
  if (!checked.success || !isObject(data)) {
    const problems = checked.success ? [] : problemsOf(checked.error, given);
    const time = typeof given["time"] === "string" ? readInstant(given["time"], "time", "invalid_time") : 0;
    if (typeof time !== "number" && given["time"] !== "") problems.push(time.detail);
    if (!isObject(data)) {
      const hint = "data_base64" in parsed ? "data_base64 is not supported, data must be" : "data is not";
      problems.push(`${hint} a JSON object`);
    }
    return rejected("invalid_envelope", detailOf(problems));
  }
  const attributes = instantOf(checked.data);
  if ("kind" in attributes) return attributes;
  const dataText = inHeaders === null ? () => memberTexts(text).get("data") ?? "{}" : () => text;
  return { attributes, data, dataText };
}
