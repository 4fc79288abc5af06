import { json, type JsonText, type Member, object } from "./values/json-text.ts";
import type { Random } from "./values/random.ts";

export type RecordKind = "conversation" | "message" | "end_user";

export type BusEvent = {
  readonly kind: RecordKind;
  /** Keeps all exports of a record on one partition. */
  readonly key: string;
  /** Null is skipped, an empty value is poison. */
  readonly value: Buffer | null;
  readonly headers: Record<string, string>;
  /** It must be rejected. */
  readonly poison: boolean;
  readonly reason?: string;
};

/** In the order of writing. */
export type Attributes = Readonly<Record<string, string>>;

export const EVENT_TYPES: Readonly<Record<RecordKind, string>> = {
  conversation: "conversation.exported",
  message: "message.exported",
  end_user: "end_user.exported",
};

export type Wire = { readonly value: Buffer; readonly headers: Record<string, string> };

export const STRUCTURED = "application/cloudevents+json";

/** CloudEvents JSON format 1.0. */
export function structured(
  attributes: Attributes,
  data: JsonText | undefined,
  contentType: string | undefined,
  spaced = false,
): Wire {
  const members: Member[] = Object.entries(attributes).map(([name, text]) => [name, json(text)]);
  if (data !== undefined) members.push(["data", data]);
  const headers: Record<string, string> = contentType === undefined ? {} : { "content-type": contentType };
  return { value: Buffer.from(object(members, spaced)), headers };
}

/** CloudEvents Kafka binding 1.0, section 3.2. */
export function binary(attributes: Attributes, data: JsonText): Wire {
  const headers: Record<string, string> = { "content-type": "application/json" };
  for (const [name, text] of Object.entries(attributes)) {
    if (name !== "datacontenttype") headers[`ce_${name}`] = text;
  }
  return { value: Buffer.from(data), headers };
}

export function writeEvent(
  random: Random,
  attributes: Attributes,
  data: readonly Member[],
  nonstandardShare: number,
): Wire {
  const { subject, ...others } = attributes;
  const isAnonymous = subject === undefined || random.chance(nonstandardShare / 4);
  const named = isAnonymous ? others : attributes;
  const traced: Attributes = random.chance(nonstandardShare)
    ? { ...named, traceparent: `00-${random.hex(32)}-${random.hex(16)}-01` }
    : named;
  const text = object(data, random.chance(nonstandardShare / 4));
  if (random.chance(0.5)) return binary(traced, text);
  const isNonstandard = random.chance(nonstandardShare);
  const nonstandardType = random.chance(0.5) ? undefined : `${STRUCTURED}; charset=utf-8`;
  const contentType = isNonstandard ? nonstandardType : STRUCTURED;
  return structured(traced, text, contentType, isNonstandard && random.chance(0.3));
}
