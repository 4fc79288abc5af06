import fc from "fast-check";
import { expect, it, describe } from "vitest";
import { z } from "zod";
import { bare, type Field } from "../record/record-fields.ts";
import type { RecordForm } from "../kinds/record-form.ts";
import { fieldGroup } from "../record/render.ts";
import { type EventType, RECORD_KINDS } from "../kinds/record-kinds.ts";
import { readEnvelope } from "./envelope.ts";
import { faultFinder } from "./faults.ts";
import { parsedDataReader } from "./parsed-data.ts";
import { plainDataReader } from "./plain-data.ts";

type Text = fc.Arbitrary<string>;

type Pieces = { readonly space: Text; readonly literal: Text; readonly number: Text; readonly word: Text };

const piecesOf = (
  literals: readonly string[],
  numbers: readonly string[],
  words: readonly string[],
  spaces: readonly string[],
): Pieces => ({
  space: fc.oneof({ weight: 12, arbitrary: fc.constant("") }, fc.constantFrom(...spaces)),
  literal: fc.array(fc.constantFrom(...literals), { maxLength: 3 }).map((pieces) => `"${pieces.join("")}"`),
  number: fc.constantFrom(...numbers),
  word: fc.constantFrom(...words),
});
const LITERALS = [
  "a",
  "Where is my order?",
  "é",
  "😀",
  "0",
  "/",
  "[{,:}]",
  "null",
  '\\"',
  "\\\\",
  "\\n",
  "\\/",
  "\\u00e9",
  "\\u0001",
  "\\ud83d\\ude00",
  "\u0085",
  "\u2028",
  "\\u2028",
  "\\u0085",
  "\u007f",
];
const NUMBERS = ["0", "1", "-0", "1.0", "1e5", "0.10", "-2.5", "9007199254740993", "12345678901234567890"];
const valid = piecesOf(LITERALS, NUMBERS, ["null", "true", "false"], [" "]);
const broken = piecesOf(
  [...LITERALS, "\\ud83d", "\\ude00", "\\ud83dx", "\\x", "\\u00g0", "\\u12", "\u0001", "\\", '"'],
  [...NUMBERS, "1E+400", "01", "1.", "-", ".5", "+1", "1e", "NaN"],
  ["null", "true", "false", "nul", "truex", "undefined", ""],
  [" ", "\n", "\t ", "\u00a0"],
);

const joined = (open: string, items: readonly (readonly [string, string, string])[], close: string): string =>
  `${open}${items.map(([before, text, after]) => before + text + after).join(",")}${close}`;
const list = (item: Text, { space }: Pieces): Text =>
  fc.array(fc.tuple(space, item, space), { maxLength: 3 }).map((items) => joined("[", items, "]"));
const member = (name: Text, value: Text, { space }: Pieces): Text =>
  fc.tuple(name, space, space, value).map(([key, before, after, text]) => `${key}${before}:${after}${text}`);
const object = (members: Text, { space }: Pieces): Text =>
  fc.array(fc.tuple(space, members, space), { maxLength: 3 }).map((items) => joined("{", items, "}"));

const anyOf = (pieces: Pieces): { readonly any: Text; readonly free: Text } => {
  const { literal, number, word } = pieces;
  const key = fc.oneof(
    fc.constantFrom('"a"', '"b"', '"c"', '"1"', '"__proto__"', '"_type"', '"score"', '"\\u0061"'),
    literal,
  );
  return fc.letrec<{ any: string; free: string }>((tie) => ({
    any: fc.oneof({ depthSize: "small" }, literal, number, word, list(tie("any"), pieces), tie("free")),
    free: object(member(key, tie("any"), pieces), pieces),
  }));
};
const { free } = anyOf(valid);
const { any } = anyOf(broken);

const date: Text = fc.constantFrom(
  '"2026-10-04T00:00:00Z"',
  '"2026-10-04T02:00:00.123456+00:00"',
  '"2026-10-04 02:00:00.1234567+02"',
  '"soon"',
);
const id: Text = fc.constantFrom('"c1"', '"\\u0063"', '"ü"', `"${"x".repeat(1_000)}"`);
const wrongId: Text = fc.constantFrom('""', `"${"x".repeat(1_001)}"`, '"\\ud83d"');

const takesNull = (schema: unknown): boolean =>
  schema instanceof z.ZodNullable || (schema instanceof z.ZodOptional && takesNull(schema.unwrap()));

const textOf = (given: unknown, name: string): Text => {
  const schema = bare(given);
  const fits = (): Text => {
    if (schema instanceof z.ZodArray) return list(textOf(schema.element, ""), valid);
    if (schema instanceof z.ZodObject) return membersOf(schema);
    if (schema instanceof z.ZodBoolean) return fc.constantFrom("true", "false");
    if (schema instanceof z.ZodNumber)
      return name === "review" ? fc.constantFrom("0", "5", "1.0", "-0") : valid.number;
    if (schema instanceof z.ZodCustom) return free;
    if (/date|_at$/.test(name)) return date;
    return name.endsWith("id") ? id : valid.literal;
  };
  if (!takesNull(given)) return fits();
  return fc.oneof({ weight: 5, arbitrary: fits() }, fc.constant("null"));
};

const membersOf = (schema: z.ZodObject): Text => {
  const shape = Object.entries(schema.shape);
  const named = shape.map(([name, field]) => member(fc.constant(`"${name}"`), textOf(field, name), valid));
  const needed = shape.flatMap(([, field], index) => (field instanceof z.ZodOptional ? [] : [index]));
  const all = fc.tuple(...named);
  const some = fc
    .tuple(all, fc.subarray(shape.map((_, index) => index)))
    .map(([texts, kept]) => texts.filter((_, index) => needed.includes(index) || kept.includes(index)));
  const shuffled = some.chain((texts) => fc.shuffledSubarray(texts, { minLength: texts.length }));
  const beside = fc.constantFrom("new_field", "x", ...shape.map(([name]) => name)).map((name) => `"${name}"`);
  const spoilt = fc
    .tuple(
      all,
      fc.nat({ max: shape.length }),
      fc.boolean(),
      member(beside, fc.oneof(any, wrongId), broken),
      broken.space,
    )
    .map(([texts, at, replaces, text, blank]) => texts.toSpliced(at, replaces ? 1 : 0, blank + text));
  return fc
    .tuple(
      fc.oneof({ weight: 4, arbitrary: all }, some, shuffled, { weight: 2, arbitrary: spoilt }),
      valid.space,
      valid.space,
    )
    .map(([texts, before, after]) => `{${before}${texts.join(`${after},${before}`)}${after}}`);
};

const ENVELOPE =
  '"specversion":"1.0","id":"e","source":"urn:x","type":"t","time":"2026-10-04T00:00:00Z","clientid":"acme"';
const event = (data: Text): Text =>
  fc.oneof(
    { weight: 4, arbitrary: data.map((text) => `{${ENVELOPE},"data":${text}}`) },
    data.map((text) => `{"data":${text},"subject":null,"traceparent":{"a":[1]},${ENVELOPE}}`),
    fc
      .tuple(data, broken.space)
      .map(([text, blank]) => `${blank}{"data":${text},${ENVELOPE},"data":${text}}`),
    data.map((text) => `{"data" : ${text},${ENVELOPE.replace("urn:x", "urn:\\u0078")}} x`),
  );

const groupsOf = (fields: readonly Field[]): (readonly Field[])[] => {
  const sent = fields.filter(([name]) => name !== "record_last_updated");
  const at = sent.findIndex(([name]) => name === "handoffs");
  return at === -1 ? [sent] : [sent.slice(0, at), sent.slice(at + 1)];
};

const check = <Data, Read extends keyof Data & string>(form: RecordForm<Data, Read>) => {
  const plainData = plainDataReader(form);
  const parsedData = parsedDataReader(form);
  const rejectionOf = faultFinder(form, "t" as EventType);
  const groups = groupsOf(form.fields).map((fields) => fieldGroup(fields, form.schema));
  const dates = {
    date_created: "2026-10-04T02:00:00.123456+00:00",
    date_updated: "D",
    created_at: "C",
    updated_at: "U",
  };
  const seen = { plain: 0, other: 0 };
  const compare = (text: string, headers: Record<string, string>): void => {
    const plain = plainData(text, headers);
    const envelope = readEnvelope(text, headers);
    const parsed = envelope && parsedData(envelope);
    const { detail } = rejectionOf(text, headers, undefined);
    if (parsed === undefined) expect(detail).not.toBe("");
    else expect(detail.replaceAll(/[\w.]+ is not an ISO 8601 date-time(; )?/g, "")).toBe("");
    if (plain === undefined) {
      seen.other += 1;
      return;
    }
    seen.plain += 1;
    const { attributes, data, render, unknownFields, repaired } = plain;
    const printed = groups.map((group) => render(group, dates));
    if (envelope === undefined) throw new Error("plain, though no event");
    expect(attributes).toEqual(envelope.attributes);
    if (parsed === undefined) throw new Error("plain, though its data breaks a rule");
    expect(printed).toEqual(groups.map((group) => parsed.render(group, dates)));
    expect(repaired).toEqual(parsed.repaired);
    expect(unknownFields).toEqual(parsed.unknownFields);
    const wanted = Object.fromEntries(
      form.reads.map((name) => [name, (parsed.data as Record<string, unknown>)[name]]),
    );
    expect(data).toEqual(wanted);
  };
  const headers = {
    ce_specversion: "1.0",
    ce_id: "e",
    ce_source: "s",
    ce_type: "t",
    ce_time: "2026-10-04T00:00:00Z",
    ce_clientid: "ü",
  };
  const data = membersOf(form.schema);
  fc.assert(
    fc.property(event(data), fc.tuple(broken.space, data), (structured, [blank, text]) => {
      compare(structured, {});
      compare(blank + text, headers);
    }),
    { numRuns: 2_000 },
  );
  return seen;
};

const ENOUGH = {
  plain: expect.toSatisfy((count: number) => count > 200),
  other: expect.toSatisfy((count: number) => count > 200),
};

describe("an event that is read in one pass", () => {
  it("is a conversation as parsing has it", () => {
    expect(check(RECORD_KINDS.conversation.form)).toEqual(ENOUGH);
  });
  it("is a message as parsing has it", () => {
    expect(check(RECORD_KINDS.message.form)).toEqual(ENOUGH);
  });
  it("is an end user as parsing has it", () => {
    expect(check(RECORD_KINDS.end_user.form)).toEqual(ENOUGH);
  });
});
