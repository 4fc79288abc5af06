import { z } from "zod";
import { type PlainFields, plainFields } from "../json/plain-fields.ts";
import type { RecordForm } from "../kinds/record-form.ts";
import { type Attributes, envelopeSchema, readHeaders, validAttributes } from "./envelope.ts";
import type { EventData } from "./event-data.ts";
import type { BusHeaders } from "./headers.ts";
import { beginPass, isNullAt, NOT_PLAIN, type Pass, QUOTE, skipBlanks } from "../json/plain-json.ts";

const NOTHING: readonly string[] = [];
const ATTRIBUTES = Object.keys(envelopeSchema.shape);
// The schema checks their rules.
const attributeTexts = z.object(
  Object.fromEntries([...ATTRIBUTES.map((name) => [name, z.string().nullish()]), ["data", z.string()]]),
);

/** Shares memory with the text unless `kept`. */
function valueOf(
  { text, hasEscapes }: Pass,
  { keys, starts, ends }: PlainFields,
  index: number,
  kept: boolean,
): unknown {
  if (keys[index] === -1) return undefined;
  const start = starts[index] ?? 0;
  const end = ends[index] ?? 0;
  if (!kept && text.charCodeAt(start) === QUOTE) {
    const inner = text.slice(start + 1, end - 1);
    if (!hasEscapes || !inner.includes("\\")) return inner;
  }
  return isNullAt(text, start) ? null : JSON.parse(text.slice(start, end));
}

export type PlainEvent<Data> = EventData<Data> & { readonly attributes: Attributes };

/** The one-pass reader. A rendering holds until the next read. */
export function plainDataReader<Data, Read extends keyof Data & string>(form: RecordForm<Data, Read>) {
  const fields = plainFields(form.schema, { takesUnknown: true });
  const names = Object.keys(form.schema.shape);
  // record_last_updated is of the record, not of the schema.
  const known = new Set(form.fields.map(([name]) => name));
  // Ids outlive the event and must not hold its text.
  const reads = form.reads.map((name) => [name, names.indexOf(name), name.endsWith("_id")] as const);
  // A copy is faster than adding fields one by one.
  const blank = Object.fromEntries(form.reads.map((name) => [name, undefined]));
  const envelope = plainFields(attributeTexts, { takesUnknown: true, readers: { data: fields.read } });

  const attributesOf = (pass: Pass): Record<string, unknown> =>
    Object.fromEntries(
      ATTRIBUTES.map((name, index) => [name, valueOf(pass, envelope, index, name === "clientid")]),
    );

  return (text: string, headers: BusHeaders): PlainEvent<Pick<Data, Read>> | undefined => {
    const pass = beginPass(text);
    if (pass === null) return undefined;
    const { attributes: inHeaders, problems } = readHeaders(headers);
    if (problems.length > 0) return undefined;
    const whole = inHeaders === null ? envelope : fields;
    const end = whole.read(pass, skipBlanks(pass, 0));
    if (end === NOT_PLAIN || skipBlanks(pass, end) !== text.length) return undefined;
    const attributes = validAttributes(inHeaders ?? attributesOf(pass));
    if (attributes === undefined) return undefined;
    const data: Record<string, unknown> = { ...blank };
    for (const [name, index, kept] of reads) data[name] = valueOf(pass, fields, index, kept);
    return {
      attributes,
      data: data as Pick<Data, Read>,
      render: (group, dates) => group.fromPlaces(text, fields, dates),
      unknownFields:
        fields.unknown.length === 0
          ? NOTHING
          : fields.unknown
              .filter((name) => !known.has(name))
              .map((name) => JSON.parse(`"${name}"`) as string),
      repaired: NOTHING,
    };
  };
}
