import { z } from "zod";
import { REPLAY_HEADERS } from "./bus-position.ts";
import { type BusHeaders, headerText } from "./headers.ts";
import { isObject, parsedJson } from "../json/json-object.ts";
import { memberTexts } from "../json/json-text.ts";
import { readInstant } from "./read-instant.ts";
import type { Micros } from "./timestamp.ts";

const attribute = z
  .string()
  .min(1)
  .max(1_000)
  .refine((text) => text.isWellFormed(), "holds half a surrogate pair");

const mediaTypeOf = (contentType: string): string => contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";

const isJson = (contentType: string): boolean =>
  contentType === "" || mediaTypeOf(contentType) === "application/json";

/** CloudEvents 1.0 with the extension `clientid`. */
export const envelopeSchema = z.object({
  specversion: z.literal("1.0"),
  id: attribute.describe("Unique per event and source"),
  source: z.string().min(1).describe("URI reference of the producer"),
  type: z.string().min(1).describe("What was exported"),
  time: attribute.describe("Instant of the export, ISO 8601: the version of the record"),
  subject: z.string().nullish().describe("The record's id; when it is given and not empty it must be equal"),
  clientid: attribute.describe("The client whose data it is"),
  datacontenttype: z
    .string()
    .refine(isJson, "is not application/json")
    .nullish()
    .describe("application/json"),
});

export type Attributes = {
  readonly type: string;
  readonly clientId: string;
  readonly subject: string | null;
  readonly exportedAt: Micros;
};

export type Envelope = {
  readonly attributes: Attributes;
  readonly data: Record<string, unknown>;
  readonly dataText: () => string;
};

const BINARY_ATTRIBUTES = ["specversion", "id", "source", "type", "time", "subject", "clientid"] as const;

type HeaderAttributes = {
  [name in (typeof BINARY_ATTRIBUTES)[number] | "datacontenttype"]?: string | null | undefined;
};

export function validAttributes(given: Readonly<Record<string, unknown>>): Attributes | undefined {
  const checked = envelopeSchema.safeParse(given);
  if (!checked.success) return undefined;
  const { type, clientid, subject, time } = checked.data;
  const exportedAt = readInstant(time);
  if (exportedAt === undefined) return undefined;
  return { type, clientId: clientid, subject: subject === "" ? null : (subject ?? null), exportedAt };
}

export type HeadersRead = {
  /** Null in structured mode. */
  readonly attributes: Readonly<HeaderAttributes> | null;
  readonly unreadable: readonly string[];
  readonly problems: readonly string[];
};

/** Modes by the CloudEvents Kafka binding 1.0, section 3. */
export function readHeaders(headers: BusHeaders): HeadersRead {
  const contentType = headerText(headers["content-type"]);
  const mediaType = mediaTypeOf(contentType ?? "");
  const isStructured =
    headerText(headers["ce_specversion"]) === null || mediaType.startsWith("application/cloudevents");
  const unreadable = contentType === undefined ? ["content-type"] : [];
  const attributes: HeaderAttributes = { datacontenttype: contentType };
  for (const name of isStructured ? [] : BINARY_ATTRIBUTES) {
    const text = headerText(headers[`ce_${name}`]);
    if (text === undefined) unreadable.push(`ce_${name}`);
    else if (text !== null) attributes[name] = text;
  }
  unreadable.push(...REPLAY_HEADERS.filter((name) => headerText(headers[name]) === undefined));
  const problems =
    unreadable.length > 0 ? [`${unreadable.join(", ")}: a header has one value, in valid UTF-8`] : [];
  if (isStructured && mediaType !== "application/cloudevents+json" && !isJson(contentType ?? ""))
    problems.push("content-type is neither application/json nor application/cloudevents+json");
  return { attributes: isStructured ? null : attributes, unreadable, problems };
}

export function readEnvelope(text: string, headers: BusHeaders): Envelope | undefined {
  const parsed = parsedJson(text);
  const { attributes: inHeaders, problems } = readHeaders(headers);
  if (!isObject(parsed) || problems.length > 0) return undefined;
  const attributes = validAttributes(inHeaders ?? parsed);
  const data = inHeaders === null ? parsed["data"] : parsed;
  if (attributes === undefined || !isObject(data)) return undefined;
  const dataText = inHeaders === null ? () => memberTexts(text).get("data") ?? "{}" : () => text;
  return { attributes, data, dataText };
}
