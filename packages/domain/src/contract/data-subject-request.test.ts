import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type DataSubject,
  type DataSubjectRequestBody,
  dataSubjectOf,
  dataSubjectRequestSchema,
  subjectText,
} from "./data-subject-request.ts";
import { MAX_ID_LENGTH } from "../kinds/field-schemas.ts";

const subjectOf = (body: unknown): DataSubject | undefined =>
  dataSubjectOf(dataSubjectRequestSchema.parse(body));
const erasure = { type: "ERASURE" } as const;

describe("an erasure request", () => {
  it.each([
    [{ ...erasure }],
    [{ ...erasure, email: null, identifiers: null }],
    [{ ...erasure, email: null, identifiers: [] }],
  ])("may name nobody: %j", (body) => {
    expect(subjectOf(body)).toBeUndefined();
  });

  it("is compared by trimmed e-mail in lower case and by sorted identifiers", () => {
    const subject = subjectOf({
      ...erasure,
      email: "\u00a0 Noor@Example.COM\t",
      identifiers: [
        { type: "email", value: "B@example.com" },
        { type: "end_user_id", value: "U" },
        { type: "chatter_id", value: " AbC " },
        { type: "email", value: "b@example.com " },
        { type: "email", value: "a@example.com" },
      ],
    });
    expect(subject).toEqual({
      email: "noor@example.com",
      identifiers: [
        { type: "chatter_id", value: " AbC " },
        { type: "email", value: "a@example.com" },
        { type: "email", value: "b@example.com" },
        { type: "end_user_id", value: "U" },
      ],
    });
  });

  it.each([
    ["type", { type: "ACCESS", email: "a@b" }],
    ["type", { email: "a@b" }],
    ["email", { ...erasure, email: "" }],
    ["email", { ...erasure, email: "nobody" }],
    ["email", { ...erasure, email: "a b@c" }],
    ["email", { ...erasure, email: 7 }],
    ["email", { ...erasure, email: `${"a".repeat(320)}@b` }],
    ["email", { ...erasure, email: "\ud800@b" }],
    ["identifiers", { ...erasure, identifiers: {} }],
    ["identifiers.0", { ...erasure, identifiers: [{ type: "phone", value: "1" }] }],
    ["identifiers.0", { ...erasure, identifiers: ["a"] }],
    ["identifiers.0.value", { ...erasure, identifiers: [{ type: "chatter_id", value: "" }] }],
    ["identifiers.0.value", { ...erasure, identifiers: [{ type: "end_user_id", value: "" }] }],
    ["identifiers.0.value", { ...erasure, identifiers: [{ type: "chatter_id", value: "a\ud800" }] }],
    [
      "identifiers.0.value",
      { ...erasure, identifiers: [{ type: "chatter_id", value: "a".repeat(MAX_ID_LENGTH + 1) }] },
    ],
    ["identifiers.0.value", { ...erasure, identifiers: [{ type: "email", value: `${"a".repeat(65)}@b` }] }],
    ["identifiers.0.value", { ...erasure, identifiers: [{ type: "email", value: "a" }] }],
    ["identifiers.0", { ...erasure, identifiers: [{ type: "email", value: "a@b", more: 1 }] }],
    ["", { ...erasure, email: "a@b", reason: "asked" }],
  ])("is refused for its %s (%#)", (path, body) => {
    const result = dataSubjectRequestSchema.safeParse(body);
    const paths = result.error?.issues.map((issue) => issue.path.join("."));
    expect(paths?.[0]?.startsWith(path)).toBe(true);
  });

  // As an id they would erase everybody.
  it.each([
    "agent",
    "bot",
    "platform",
    "None",
    "null",
    " Bot ",
  ])("is refused for the word %j as an id", (value) => {
    for (const type of ["chatter_id", "end_user_id"]) {
      const body = { ...erasure, identifiers: [{ type, value }] };
      expect(dataSubjectRequestSchema.safeParse(body).error?.issues).toMatchObject([
        { path: ["identifiers", 0, "value"], message: expect.stringContaining("stands for no person") },
      ]);
    }
  });

  it("takes ids as long as those of records, and addresses of 320", () => {
    const longest = `${"a".repeat(64)}@${"b".repeat(255)}`;
    const body = {
      ...erasure,
      email: longest,
      identifiers: [{ type: "chatter_id", value: "a".repeat(MAX_ID_LENGTH) }],
    };
    expect(subjectOf(body)).toMatchObject({ email: longest });
  });

  it("is not looked at entry by entry when it has too many", () => {
    const result = dataSubjectRequestSchema.safeParse({ ...erasure, identifiers: Array(101).fill("wrong") });
    expect(result.error?.issues).toMatchObject([
      { path: ["identifiers"], message: "must have at most 100 entries" },
    ]);
  });

  it("has one text for one subject, whatever the order and the repetitions", () => {
    const identifier = fc.record({
      type: fc.constantFrom("chatter_id" as const, "email" as const),
      value: fc.constantFrom("a@x", "b@x", "c@x"),
    });
    const both = fc
      .array(identifier, { minLength: 1 })
      .chain((list) =>
        fc.tuple(fc.constant(list), fc.shuffledSubarray([...list, ...list], { minLength: 2 * list.length })),
      );
    fc.assert(
      fc.property(both, ([one, other]) => {
        const text = (identifiers: DataSubjectRequestBody["identifiers"]): string =>
          subjectText(dataSubjectOf({ ...erasure, identifiers }) as DataSubject);
        expect(text(other)).toBe(text(one));
        expect(text([...one, { type: "email", value: "new@x" }])).not.toBe(text(one));
      }),
    );
  });

  it("tells apart what lies in other fields", () => {
    const texts = [
      { ...erasure, email: "a@b" },
      { ...erasure, identifiers: [{ type: "email", value: "a@b" }] },
      { ...erasure, identifiers: [{ type: "chatter_id", value: "a@b" }] },
      { ...erasure, email: "a@b", identifiers: [{ type: "email", value: "a@b" }] },
    ].map((body) => subjectText(subjectOf(body) as DataSubject));
    expect(new Set(texts).size).toBe(texts.length);
  });
});
