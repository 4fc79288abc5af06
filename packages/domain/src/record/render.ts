import type { z } from "zod";
import { compact, integerText, itemTexts, memberTexts } from "../json/json-text.ts";
import type { PlainFields } from "../json/plain-fields.ts";
import type { Field, FieldKind } from "./record-fields.ts";

export type Dates = Readonly<Record<string, string>>;
type Members = ReadonlyMap<string, string>;

export type FieldGroup = {
  /** Keeps digits, number forms and the order of keys. */
  fromText(members: Members, dates: Dates): string;
  /** Copies whole runs of fields. */
  fromPlaces(text: string, places: PlainFields, dates: Dates): string;
};

export const fieldTexts = memberTexts;

const NO_DATES: Dates = {};

type Part = {
  readonly name: string;
  readonly label: string;
  readonly empty: string;
  readonly isDate: boolean;
  readonly text: (given: string) => string;
};

const EMPTY: Readonly<Record<FieldKind, string>> = {
  value: "null",
  integer: "null",
  date: "null",
  list: "[]",
  items: "[]",
  object: "{}",
  members: "{}",
};

function partOf([name, kind, fields]: Field): Part {
  const part = { name, label: `"${name}":`, empty: EMPTY[kind], isDate: kind === "date" };
  if (fields === undefined) return { ...part, text: kind === "integer" ? integerText : compact };
  const fromText = textsOf(fields.map(partOf));
  const object = (text: string): string => `{${fromText(memberTexts(text), NO_DATES)}}`;
  if (kind === "members") return { ...part, text: object };
  return { ...part, text: (given) => `[${itemTexts(given).map(object).join(",")}]` };
}

const rendered = ({ empty, text }: Part, given: string | undefined): string =>
  given === undefined || given === "null" ? empty : text(given);

const textsOf =
  (parts: readonly Part[]): FieldGroup["fromText"] =>
  (members, dates) =>
    parts
      .map((part) => {
        const { name, label, isDate } = part;
        return label + (isDate ? `"${dates[name] ?? ""}"` : rendered(part, members.get(name)));
      })
      .join(",");

/** Fields must follow each other in `schema`. */
export function fieldGroup(fields: readonly Field[], schema: z.ZodObject): FieldGroup {
  const parts = fields.map(partOf);
  const first = Object.keys(schema.shape).indexOf(parts[0]?.name ?? "");
  return {
    fromText: textsOf(parts),
    fromPlaces(text, { keys, starts, ends, loose }, dates) {
      let out = "";
      let runStart = -1;
      let runEnd = -1;
      let index = first;
      for (const part of parts) {
        const { name, label, isDate } = part;
        const key = keys[index] ?? -1;
        const start = starts[index] ?? -1;
        const end = ends[index] ?? -1;
        const value = isDate ? `"${dates[name] ?? ""}"` : undefined;
        const isAsItLeaves =
          value === undefined
            ? loose[index] === 0
            : text.startsWith(value, start) && end - start === value.length;
        const stays = key !== -1 && isAsItLeaves && start - key === label.length;
        if (stays && key === runEnd + 1) {
          runEnd = end;
        } else {
          if (runStart !== -1) out += `${text.slice(runStart, runEnd)},`;
          runStart = stays ? key : -1;
          runEnd = stays ? end : -1;
          if (!stays) {
            const given = key === -1 ? undefined : text.slice(start, end);
            out += `${label}${value ?? rendered(part, given)},`;
          }
        }
        index += 1;
      }
      return runStart === -1 ? out.slice(0, -1) : out + text.slice(runStart, runEnd);
    },
  };
}
