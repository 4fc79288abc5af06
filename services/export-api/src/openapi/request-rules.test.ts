import { dataSubjectRequestSchema, smsTriggerSchema } from "@conversation-export/domain";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createListReader, createTestApp } from "../http/app.fixture.ts";

const { app } = createTestApp(createListReader({}).reader);
const document = (await app.inject({ url: "/api/openapi.json", headers: { host: "x" } })).json<{
  components: { schemas: Record<string, object> };
}>();
// zod counts UTF-16 units instead of characters.
const ajv = new Ajv2020({ strict: false });

const judge = (name: "DataSubjectRequest" | "SmsTrigger", body: unknown): boolean => {
  const schema = name === "SmsTrigger" ? smsTriggerSchema : dataSubjectRequestSchema;
  const served = schema.safeParse(body).success;
  expect(
    ajv.compile(document.components.schemas[name] ?? false)(body),
    JSON.stringify(body).slice(0, 200),
  ).toBe(served);
  return served;
};

const erasureOf = (type: string, value: string) => ({ type: "ERASURE", identifiers: [{ type, value }] });
const triggerOf = (fields: object, others: object = {}) => ({
  campaign_key: "welcome",
  language: "en",
  recipient: { meta_fields: { phone_number: "+15551234567", ...fields } },
  ...others,
});

const WIDE = "😀";
const WORDS = ["agent", "bot", "platform", "none", "null", "undefined", "baseline"];

describe("the document and the service judge a request alike", () => {
  it.each(["chatter_id", "end_user_id"])("that names a %s", (type) => {
    const takes = (value: string): boolean => judge("DataSubjectRequest", erasureOf(type, value));
    for (const word of WORDS) {
      const capital = word.replace(/^./, (character) => character.toUpperCase());
      for (const refused of [word, capital, word.toUpperCase(), ` ${word}`, `\u00a0\ufeff${capital}\n`])
        expect(takes(refused), refused).toBe(false);
      for (const taken of [
        `${word}1`,
        `a${word}`,
        `${word} ${word}`,
        `"${word}"`,
        `${word}\u200b`,
        `${word}.`,
      ])
        expect(takes(taken), taken).toBe(true);
    }
    expect(takes("")).toBe(false);
    expect(takes(" ")).toBe(true);
    for (const character of ["a", "é", WIDE]) {
      expect(takes(character.repeat(1_000)), character).toBe(true);
      expect(takes(character.repeat(1_001)), character).toBe(false);
    }
  });

  it("that names an address", () => {
    for (const takes of [
      (value: string) => judge("DataSubjectRequest", erasureOf("email", value)),
      (value: string) => judge("DataSubjectRequest", { type: "ERASURE", email: value }),
    ]) {
      for (const character of ["a", "é", WIDE]) {
        const longest = `${character.repeat(64)}@${character.repeat(255)}`;
        expect(takes(longest), character).toBe(true);
        expect(takes(`${longest}${character}`), character).toBe(false);
        expect(takes(`${character}${longest}`), character).toBe(false);
        expect(takes(longest + " ".repeat(192)), character).toBe(true);
        expect(takes(longest + " ".repeat(193)), character).toBe(false);
      }
      expect(takes("a@b".padEnd(512))).toBe(true);
      expect(takes("a@b".padEnd(513))).toBe(false);
      for (const taken of ["\u00a0a@b\ufeff\n", "None@b", "\u200ba@b"])
        expect(takes(taken), taken).toBe(true);
      for (const refused of ["a", "@b", "a@", "a b@c", "a@b@c", "a\u0085@b", "a\u0000@b", ""])
        expect(takes(refused), refused).toBe(false);
    }
  });

  it("that starts a conversation", () => {
    const takes = (fields: object, others?: object): boolean =>
      judge("SmsTrigger", triggerOf(fields, others));
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, at]));
    expect(takes(many(49))).toBe(true);
    expect(takes(many(50))).toBe(false);
    for (const character of ["a", "é", WIDE]) {
      expect(takes({ [character.repeat(100)]: character.repeat(1_000) }), character).toBe(true);
      expect(takes({ [character.repeat(101)]: 1 }), character).toBe(false);
      expect(takes({ a: character.repeat(1_001) }), character).toBe(false);
    }
    for (const value of [0, -1.5, true, "", 2 ** 53 - 1, 1 - 2 ** 53]) expect(takes({ a: value })).toBe(true);
    for (const value of [null, [], {}, 2 ** 53, -(2 ** 53), 1e300]) expect(takes({ a: value })).toBe(false);
    for (const phone_number of ["+1", "15551234567", "+05551234567", "+1234567890123456", "+1555123456a", 1])
      expect(takes({ phone_number }), String(phone_number)).toBe(false);
    for (const language of ["e", "en_US", "en-", "en-123456789", ""])
      expect(takes({}, { language })).toBe(false);
    for (const campaign_key of ["", "a b", "a\n", "a".repeat(129)])
      expect(takes({}, { campaign_key })).toBe(false);
  });

  it("whatever its texts", () => {
    const blank = fc.string({
      unit: fc.constantFrom(...Array.from(" \t\n\u001c\u0085\u00a0\u200b\u2028\ufeff")),
      maxLength: 2,
    });
    const core = fc.oneof(
      fc.mixedCase(fc.constantFrom(...WORDS)),
      fc.constantFrom("+15551234567", "a@b", "İ", "K"),
      fc.string({ unit: fc.constantFrom(...Array.from("a@+1-_. \u0000\u007f\u0085\u2028é😀")) }),
    );
    const text = fc.tuple(blank, core, blank).map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, fc.constantFrom("email", "chatter_id", "end_user_id", "phone"), (value, type) => {
        judge("DataSubjectRequest", erasureOf(type, value));
        judge("DataSubjectRequest", { type: "ERASURE", email: value });
        judge("SmsTrigger", triggerOf({ [value]: value }, { campaign_key: value, language: value }));
        judge("SmsTrigger", triggerOf({ phone_number: value }));
      }),
    );
  });
});
