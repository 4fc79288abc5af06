import { z } from "zod";
import { MAX_ID_LENGTH } from "../kinds/field-schemas.ts";
import { boundedText } from "./bounded-text.ts";
import { emailForm } from "./email-form.ts";

/** In order; a request never goes back. */
export const REQUEST_STATUSES = [
  "received",
  "queued",
  "awaiting_approval",
  "approved",
  "running",
  "refused",
  "failed",
  "completed",
] as const;
export type RequestStatus = (typeof REQUEST_STATUSES)[number];
export const FINISHED_STATUSES: readonly RequestStatus[] = ["refused", "failed", "completed"];

const MAX_IDENTIFIERS = 100;
export const MAX_NAMES = MAX_IDENTIFIERS + 1;

// Permissive: only the mail system knows which addresses are valid. Lengths: RFC 5321.
const CONTROL = String.raw`\u0000-\u001f\u007f-\u009f`;
const EMAIL = new RegExp(String.raw`^\s*[^\s@${CONTROL}]{1,64}@[^\s@${CONTROL}]{1,255}\s*$`, "u");

const email = boundedText(512, "must have at most 64 characters, @, and at most 255 characters")
  .regex(EMAIL, "must be an e-mail address")
  .trim();

/** As a person's id they would name everybody (specification 2.1, 2.2). */
const RESERVED = ["agent", "bot", "platform", "none", "null", "undefined", "baseline"];

// A pattern of JSON Schema has no flags.
const ANY_CASE = RESERVED.join("|").replaceAll(
  /[a-z]/g,
  (character) => `[${character}${character.toUpperCase()}]`,
);
const NO_RESERVED = new RegExp(String.raw`^(?!\s*(?:${ANY_CASE})\s*$)`);

/** Accepts every id of a person in records. */
const personId = boundedText(MAX_ID_LENGTH)
  .min(1, "must not be empty")
  .regex(NO_RESERVED, `is a word that stands for no person: ${RESERVED.join(", ")}`);

const identifier = z.discriminatedUnion(
  "type",
  [
    z.strictObject({ type: z.literal("email"), value: email }),
    z.strictObject({ type: z.literal("chatter_id"), value: personId }),
    z.strictObject({ type: z.literal("end_user_id"), value: personId }),
  ],
  "must be email, chatter_id or end_user_id",
);

export const dataSubjectRequestSchema = z.strictObject({
  type: z.literal("ERASURE", "must be ERASURE").describe("What is to be done with the person's data"),
  email: email.nullish().describe("The person's e-mail address"),
  identifiers: z
    .array(identifier)
    .max(MAX_IDENTIFIERS, `must have at most ${MAX_IDENTIFIERS} entries`)
    .nullish()
    .describe("Further identifiers of the person"),
});

export type DataSubjectRequestBody = z.infer<typeof dataSubjectRequestSchema>;
export type SubjectIdentifier = z.infer<typeof identifier>;

export type DataSubject = {
  readonly email: string | null;
  readonly identifiers: readonly SubjectIdentifier[];
};

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

const canonical = (one: SubjectIdentifier): SubjectIdentifier =>
  one.type === "email" ? { type: one.type, value: emailForm(one.value) } : one;

export const dataSubjectOf = (body: DataSubjectRequestBody): DataSubject | undefined => {
  const identifiers = (body.identifiers ?? [])
    .map(canonical)
    .sort((a, b) => compare(a.type, b.type) || compare(a.value, b.value))
    .filter((one, at, all) => one.type !== all[at - 1]?.type || one.value !== all[at - 1]?.value);
  const subject = { email: typeof body.email === "string" ? emailForm(body.email) : null, identifiers };
  return subject.email === null && identifiers.length === 0 ? undefined : subject;
};

export const namesOf = ({ email: address, identifiers }: DataSubject): readonly SubjectIdentifier[] =>
  address === null ? identifiers : [{ type: "email", value: address }, ...identifiers];

/** Equal only for equal subjects. */
export const subjectText = ({ email: address, identifiers }: DataSubject): string =>
  JSON.stringify([address, identifiers.map(({ type, value }) => [type, value])]);
