import { z } from "zod";
import { envelopeSchema } from "../event/envelope.ts";
import { formatTimestampZ, type Micros } from "../event/timestamp.ts";
import { boundedText, hasAtMost } from "./bounded-text.ts";

export const SMS_TRIGGER_TYPE = "sms.trigger_requested";
const SOURCE = "/conversation-export/export-api";

const MAX_META_FIELDS = 50;
const MAX_META_NAME = 100;
const MAX_META_TEXT = 1_000;

export const CAMPAIGN_KEY = /^[A-Za-z0-9._-]{1,128}$/;
export const LANGUAGE_TAG = /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8}$/;

const campaignKey = z
  .string()
  .regex(CAMPAIGN_KEY, "must be 1 to 128 characters of A-Z, a-z, 0-9, '.', '_' and '-'");
const language = z.string().regex(LANGUAGE_TAG, "must be a language tag such as en or pt-BR");
const phoneNumber = z.string().regex(/^\+[1-9]\d{1,14}$/, "must be an E.164 number such as +15551234567");

// JSON readers lose digits of larger numbers.
const exactNumber = z
  .number()
  .min(Number.MIN_SAFE_INTEGER, "is beyond what a number carries exactly: send a string")
  .max(Number.MAX_SAFE_INTEGER, "is beyond what a number carries exactly: send a string");
const metaValue = z.union(
  [boundedText(MAX_META_TEXT), exactNumber, z.boolean()],
  "must be a string, a number or a boolean",
);

const metaNamesRefusal = (value: unknown): string | undefined => {
  const names = typeof value === "object" && value !== null ? Object.keys(value) : [];
  if (names.length > MAX_META_FIELDS) return `must have at most ${MAX_META_FIELDS} fields`;
  if (names.some((name) => !hasAtMost(name, MAX_META_NAME) || !name.isWellFormed())) {
    return `names must be well-formed text of at most ${MAX_META_NAME} characters`;
  }
  return undefined;
};

// Names first: each of many wrong values would be an issue.
const metaFields = z.preprocess(
  (fields, context) => {
    const refusal = metaNamesRefusal(fields);
    if (refusal === undefined) return fields;
    context.addIssue(refusal);
    return z.NEVER;
  },
  z
    .object({ phone_number: phoneNumber.describe("E.164") })
    .catchall(metaValue)
    .meta({
      maxProperties: MAX_META_FIELDS,
      propertyNames: { maxLength: MAX_META_NAME, pattern: "^(?!__proto__$)" },
    }),
);

const recipient = z.strictObject({ meta_fields: metaFields });

export const smsTriggerSchema = z.strictObject({
  campaign_key: campaignKey.describe("The key of a campaign that is registered for the client"),
  language: language.describe("BCP 47 tag of the language to write in"),
  recipient: recipient.describe("Whom to write to"),
});

export type SmsTrigger = z.infer<typeof smsTriggerSchema>;

export const smsTriggerEventSchema = envelopeSchema.extend({
  time: envelopeSchema.shape.time.describe("Instant of the request, ISO 8601"),
  type: z.literal(SMS_TRIGGER_TYPE),
  subject: campaignKey.describe("The campaign's key"),
  data: z.object({
    client_id: envelopeSchema.shape.clientid,
    campaign_key: campaignKey,
    language,
    recipient: z.object({ meta_fields: metaFields }),
    requested_at: z.string().min(1).describe("Instant of the request, equal to time"),
  }),
});

export type SmsTriggerEvent = z.infer<typeof smsTriggerEventSchema>;

/** `id`: the same when the request is repeated. */
export const smsTriggerEvent = (given: {
  readonly id: string;
  readonly clientId: string;
  readonly trigger: SmsTrigger;
  readonly requestedAt: Micros;
}): SmsTriggerEvent => {
  const { id, clientId, trigger } = given;
  const time = formatTimestampZ(given.requestedAt);
  return {
    specversion: "1.0",
    id,
    source: SOURCE,
    type: SMS_TRIGGER_TYPE,
    time,
    subject: trigger.campaign_key,
    clientid: clientId,
    datacontenttype: "application/json",
    data: {
      client_id: clientId,
      campaign_key: trigger.campaign_key,
      language: trigger.language,
      recipient: trigger.recipient,
      requested_at: time,
    },
  };
};

/** Keeps requests for one number in order. */
export const smsTriggerBusKey = (event: SmsTriggerEvent): string =>
  `${event.clientid}:${event.data.recipient.meta_fields.phone_number}`;
