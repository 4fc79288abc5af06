import { type Delivered, Refusal } from "./delivered.ts";
import { type Exact, type ExactObject, isObject, member, parseExact } from "./exact-json.ts";
import { hasForm, isInRange, readInstant } from "./instant.ts";

export type Envelope = {
  readonly client: string;
  /** Null: the event names none. */
  readonly subject: string | null;
  readonly time: bigint;
  readonly data: ExactObject;
};

const FIVE_MINUTES = 300_000_000n;

function readText(value: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(value);
}

function readJson(value: Uint8Array): Exact {
  try {
    return parseExact(readText(value));
  } catch {
    throw new Refusal("invalid_envelope");
  }
}

function required(value: Exact | undefined): string {
  if (typeof value !== "string" || value === "") throw new Refusal("invalid_envelope");
  return value;
}

/** By content type, then `ce_specversion`, then JSON with `specversion`. @throws Refusal */
export function readEnvelope({ event, busTime }: Delivered, expectedType: string): Envelope {
  const { value, headers } = event;
  if (value === null || value.length === 0) throw new Refusal("empty_value");
  const json = readJson(value);
  if (!isObject(json)) throw new Refusal("invalid_envelope");
  const isStructured = (headers["content-type"]?.toString() ?? "").startsWith("application/cloudevents+json");
  const isBinary = !isStructured && headers["ce_specversion"] !== undefined;
  const attribute = (name: string): Exact | undefined =>
    isBinary ? headers[`ce_${name}`]?.toString() : member(json, name);

  if (attribute("specversion") !== "1.0") throw new Refusal("invalid_envelope");
  required(attribute("id"));
  required(attribute("source"));
  const type = required(attribute("type"));
  const time = required(attribute("time"));
  const client = required(attribute("clientid"));
  const given = attribute("subject") ?? null;
  const subject = given === null || given === "" ? null : required(given);
  const data = isBinary ? json : member(json, "data");
  if (!isObject(data)) throw new Refusal("invalid_envelope");

  if (type !== expectedType) throw new Refusal("unexpected_type");
  const instant = readInstant(time);
  if (instant === undefined) throw new Refusal(hasForm(time) ? "date_out_of_range" : "invalid_time");
  if (!isInRange(instant)) throw new Refusal("date_out_of_range");
  if (busTime !== undefined && instant > busTime + FIVE_MINUTES) throw new Refusal("time_in_future");
  return { client, subject, time: instant, data };
}
