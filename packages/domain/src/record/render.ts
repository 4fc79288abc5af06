import { compact, itemTexts, memberTexts } from "../event/json-text.ts";
import type { Field, FieldKind } from "./record-fields.ts";

type Data = Readonly<Record<string, unknown>>;
export type Dates = Readonly<Record<string, string>>;
type Members = ReadonlyMap<string, string>;

/** Some fields of a record in their order, rendered as `"name":text` joined by commas. */
export type FieldGroup = {
  /** From parsed values: fast, and exact where the text prints as it was read. */
  fromValues(data: Data, dates: Dates): string;
  /** From the record's own text: keeps all digits, number forms and the order of keys. */
  fromText(members: Members, dates: Dates): string;
};

/** The texts of a record's fields, for `fromText`. */
export const fieldTexts = memberTexts;

const NO_DATES: Dates = {};

type Part = {
  readonly name: string;
  readonly label: string;
  /** What leaves for null or absent, as a value and as text. */
  readonly empty: unknown;
  readonly emptyText: string;
  readonly isDate: boolean;
  readonly value: ((given: unknown) => unknown) | undefined;
  readonly text: (given: string) => string;
};

const EMPTY: Readonly<Record<FieldKind, unknown>> = {
  value: null,
  date: null,
  list: [],
  items: [],
  object: {},
  members: {},
};

function partOf([name, kind, fields]: Field): Part {
  const empty = EMPTY[kind];
  const emptyText = JSON.stringify(empty);
  const part = { name, label: `"${name}":`, empty, emptyText, isDate: kind === "date" };
  if (fields === undefined) return { ...part, value: undefined, text: compact };
  const { ordered, fromText } = nestedGroup(fields);
  const object = (text: string): string => `{${fromText(memberTexts(text), NO_DATES)}}`;
  if (kind === "members") {
    return { ...part, value: (given) => ordered(given as Data, NO_DATES), text: object };
  }
  return {
    ...part,
    value: (given) => (given as readonly Data[]).map((item) => ordered(item, NO_DATES)),
    text: (given) => `[${itemTexts(given).map(object).join(",")}]`,
  };
}

function nestedGroup(fields: readonly Field[]) {
  const parts = fields.map(partOf);
  // Copying an object that has all names gives one in their order, of one shape, which prints fast.
  const blank: Data = Object.fromEntries(parts.map(({ name, empty }) => [name, empty]));
  return {
    ordered(data: Data, dates: Dates): Data {
      const copy: Record<string, unknown> = { ...blank };
      for (const { name, isDate, value } of parts) {
        const given = isDate ? dates[name] : data[name];
        if (given !== null && given !== undefined) copy[name] = value === undefined ? given : value(given);
      }
      return copy;
    },
    fromText(members: Members, dates: Dates): string {
      const texts = parts.map(({ name, label, emptyText, isDate, text }) => {
        if (isDate) return `${label}"${dates[name] ?? ""}"`;
        const given = members.get(name);
        return label + (given === undefined || given === "null" ? emptyText : text(given));
      });
      return texts.join(",");
    },
  };
}

export function fieldGroup(fields: readonly Field[]): FieldGroup {
  const { ordered, fromText } = nestedGroup(fields);
  return { fromValues: (data, dates) => JSON.stringify(ordered(data, dates)).slice(1, -1), fromText };
}
