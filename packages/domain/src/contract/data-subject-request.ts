import { z } from "zod";
import { emailForm } from "./email-form.ts";

/** States of a request in their order; a request never goes back to an earlier one. */
export const REQUEST_STATUSES = ["received", "queued", "running", "failed", "completed"] as const;
export type RequestStatus = (typeof REQUEST_STATUSES)[number];

const MAX_IDENTIFIERS = 100;

// Permissive: only the mail system knows which addresses are valid.
const EMAIL = /^\s*[^\s@]+@[^\s@]+\s*$/;

const email = z
  .string()
  .max(320, "must have at most 320 characters")
  .regex(EMAIL, "must be an e-mail address")
  .refine((text) => text.isWellFormed(), "holds half a surrogate pair")
  .trim();

const personId = z
  .string()
  .min(1, "must not be empty")
  .max(1_000, "must have at most 1000 characters")
  .refine((text) => text.isWellFormed(), "holds half a surrogate pair");

const identifier = z.discriminatedUnion(
  "type",
  [
    z.strictObject({ type: z.literal("email"), value: email }),
    z.strictObject({ type: z.literal("chatter_id"), value: personId }),
    z.strictObject({ type: z.literal("end_user_id"), value: personId }),
  ],
  "must be email, chatter_id or end_user_id",
);

/** The body of a data-subject request. */
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

/** The person of a request, in the one form in which requests are compared and stored. */
export type DataSubject = {
  readonly email: string | null;
  readonly identifiers: readonly SubjectIdentifier[];
};

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

const canonical = (one: SubjectIdentifier): SubjectIdentifier =>
  one.type === "email" ? { type: one.type, value: emailForm(one.value) } : one;

/**
 * The subject of a body: e-mail addresses in their one form, ids as they are, identifiers sorted and
 * each of them once. undefined when the body names nobody.
 */
export const dataSubjectOf = (body: DataSubjectRequestBody): DataSubject | undefined => {
  const identifiers = (body.identifiers ?? [])
    .map(canonical)
    .sort((a, b) => compare(a.type, b.type) || compare(a.value, b.value))
    .filter((one, at, all) => one.type !== all[at - 1]?.type || one.value !== all[at - 1]?.value);
  const subject = { email: typeof body.email === "string" ? emailForm(body.email) : null, identifiers };
  return subject.email === null && identifiers.length === 0 ? undefined : subject;
};

/** A text that is equal exactly for equal subjects. */
export const subjectText = ({ email: address, identifiers }: DataSubject): string =>
  JSON.stringify([address, identifiers.map(({ type, value }) => [type, value])]);
