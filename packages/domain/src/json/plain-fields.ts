import { z } from "zod";
import { integerText } from "./json-text.ts";
import {
  isNullAt,
  NOT_PLAIN,
  type Pass,
  plainColon,
  plainFlag,
  plainKey,
  plainList,
  plainMembers,
  plainNull,
  plainNumber,
  plainObject,
  plainString,
  plainValue,
  skipBlanks,
} from "./plain-json.ts";
import { MOST_NAMES } from "../record/noted-names.ts";
import { FIELD_FORMS, IDS, MAX_ID_LENGTH } from "../kinds/field-schemas.ts";

export type Reader = (pass: Pass, start: number) => number;

/** Plain literals have no half pairs, and no fewer characters than their text. */
const isPlainId = (length: number): boolean => length > '""'.length && length <= MAX_ID_LENGTH + '""'.length;

const plainInteger: Reader = (pass, start) => {
  const end = plainNumber(pass, start);
  const text = pass.text.slice(start, end);
  if (end !== NOT_PLAIN && text !== integerText(text)) pass.loose = true;
  return end;
};

/** `isRight`: by its length the literal needs no check. */
const checked = (
  schema: z.ZodType,
  read: Reader,
  isRight: (length: number) => boolean = () => false,
): Reader =>
  // Formats such as z.int() are checks themselves.
  (schema.def.checks ?? []).length > 0 || "check" in schema.def
    ? (pass, start) => {
        const end = read(pass, start);
        if (end === NOT_PLAIN || isRight(end - start)) return end;
        return schema.safeParse(JSON.parse(pass.text.slice(start, end))).success ? end : NOT_PLAIN;
      }
    : read;

const orNull =
  (read: Reader, leavesAsNull: boolean): Reader =>
  (pass, start) => {
    if (!isNullAt(pass.text, start)) return read(pass, start);
    if (!leavesAsNull) pass.loose = true;
    return plainNull(pass, start);
  };

const leavesAsNull = (schema: unknown): boolean =>
  !(schema instanceof z.ZodArray || schema instanceof z.ZodObject) &&
  FIELD_FORMS.get(schema as z.ZodType)?.form !== "object";

const readerOf = (given: unknown): Reader => {
  if (given instanceof z.ZodOptional) return readerOf(given.unwrap());
  if (given instanceof z.ZodNullable) return orNull(readerOf(given.unwrap()), leavesAsNull(given.unwrap()));
  if (given instanceof z.ZodString)
    return checked(given, plainString, IDS.get(given) === undefined ? undefined : isPlainId);
  if (given instanceof z.ZodNumber) return checked(given, given.isInt ? plainInteger : plainNumber);
  if (given instanceof z.ZodBoolean) return plainFlag;
  if (given instanceof z.ZodCustom) return (pass, start) => plainObject(pass, start);
  if (given instanceof z.ZodArray) {
    const item = readerOf(given.element);
    return (pass, start) => plainList(pass, start, (at) => item(pass, at));
  }
  if (given instanceof z.ZodObject) return plainFields(given).read;
  throw new TypeError("a schema of an unknown kind");
};

/** By field of the schema; valid until the next object is read. */
export type PlainFields = {
  readonly read: Reader;
  /** The key's quote; -1: absent. */
  readonly keys: Int32Array;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** 1: leaves in another form. */
  readonly loose: Uint8Array;
  readonly unknown: readonly string[];
};

/** @throws TypeError for an unknown kind of schema */
export function plainFields(
  schema: z.ZodObject,
  options: { readonly takesUnknown?: boolean; readonly readers?: Readonly<Record<string, Reader>> } = {},
): PlainFields {
  const { takesUnknown = false, readers: given = {} } = options;
  const shape = Object.entries(schema.shape);
  const labels = shape.map(([name]) => `"${name}":`);
  const indexes = new Map(shape.map(([name], index) => [name, index]));
  const readers = shape.map(([name, field]) => given[name] ?? readerOf(field));
  const required = shape.flatMap(([, field], index) => (field instanceof z.ZodOptional ? [] : [index]));
  const keys = new Int32Array(shape.length);
  const starts = new Int32Array(shape.length);
  const ends = new Int32Array(shape.length);
  const loose = new Uint8Array(shape.length);
  const unknown: string[] = [];
  // As in the last object: the next is probably alike.
  const order = shape.map((_, index) => index);

  const readField = (pass: Pass, index: number, key: number, value: number): number => {
    const wasLoose = pass.loose;
    pass.loose = false;
    const end = readers[index]?.(pass, value) ?? NOT_PLAIN;
    keys[index] = key;
    starts[index] = value;
    ends[index] = end;
    loose[index] = pass.loose ? 1 : 0;
    pass.loose ||= wasLoose;
    return end;
  };

  const readOther = (pass: Pass, place: number, key: number): number => {
    const keyEnd = plainKey(pass, key);
    const value = keyEnd === NOT_PLAIN ? NOT_PLAIN : plainColon(pass, keyEnd);
    if (value === NOT_PLAIN) return NOT_PLAIN;
    const name = pass.text.slice(key + 1, keyEnd - 1);
    const index = indexes.get(name);
    if (index !== undefined) {
      order[place] = index;
      return readField(pass, index, key, value);
    }
    if (!takesUnknown || unknown.length === MOST_NAMES || unknown.includes(name)) return NOT_PLAIN;
    unknown.push(name);
    return plainValue(pass, value);
  };

  const read: Reader = (pass, start) => {
    const { text } = pass;
    keys.fill(-1);
    unknown.length = 0;
    let place = 0;
    const end = plainMembers(pass, start, (key) => {
      const index = order[place] ?? 0;
      const label = labels[index] ?? "";
      // Takes half the time of startsWith.
      const after =
        text.slice(key, key + label.length) === label
          ? readField(pass, index, key, skipBlanks(pass, key + label.length))
          : readOther(pass, place, key);
      if (order[place] !== place) pass.loose = true;
      place += 1;
      return after;
    });
    if (place !== shape.length) pass.loose = true;
    return required.every((index) => keys[index] !== -1) ? end : NOT_PLAIN;
  };
  return { read, keys, starts, ends, loose, unknown };
}
