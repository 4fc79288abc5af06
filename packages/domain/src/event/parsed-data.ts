import type { Field } from "../record/record-fields.ts";
import type { RecordForm } from "../record/record-form.ts";
import { fieldTexts } from "../record/render.ts";
import type { Envelope } from "./envelope.ts";
import type { EventData } from "./event-data.ts";
import { countKeys, MAX_DEPTH } from "./json-object.ts";
import { countKeyTexts, replaceHalfPairs, withoutRepeatedKeys } from "./json-text.ts";
import { type Rejected, rejected } from "./outcome.ts";
import { detailOf, problemsOf } from "./problems.ts";
import { unknownFieldsBeside } from "./unknown-fields.ts";

const NOTHING: readonly string[] = [];
const TOO_DEEP = rejected("nested_too_deeply", `data is nested deeper than ${MAX_DEPTH} levels`);

type Given = {
  readonly given: Record<string, unknown>;
  readonly text: string;
  readonly repaired: readonly string[];
};

/** The data with U+FFFD for each half of a surrogate pair. */
function withoutHalfPairs({ data, dataText }: Envelope, fields: readonly Field[]): Given {
  const before = dataText();
  const text = replaceHalfPairs(before);
  if (text === before) return { given: data, text, repaired: NOTHING };
  const given = JSON.parse(text) as Record<string, unknown>;
  const isChanged = (name: string): boolean => JSON.stringify(given[name]) !== JSON.stringify(data[name]);
  return { given, text, repaired: fields.map(([name]) => name).filter(isChanged) };
}

/** Reads the parsed data of an event of any form. */
export function parsedDataReader<Data, Read extends keyof Data & string>(form: RecordForm<Data, Read>) {
  const { schema, fields } = form;
  const noteUnknown = unknownFieldsBeside(fields);
  return (envelope: Envelope): EventData<Pick<Data, Read>> | Rejected => {
    const keys = countKeys(envelope.data);
    if (keys === undefined) return TOO_DEEP;
    const checked = schema.safeParse(envelope.data);
    if (!checked.success)
      return rejected("invalid_record", detailOf(problemsOf(checked.error, envelope.data)));
    // Only now: an id with half a pair is refused above.
    const { given, text, repaired } = withoutHalfPairs(envelope, fields);
    const parsedKeys = given === envelope.data ? keys : countKeys(given);
    const once = countKeyTexts(text) === parsedKeys ? text : withoutRepeatedKeys(text);
    const members = fieldTexts(once);
    const unknownFields: string[] = [];
    noteUnknown(given, unknownFields);
    return {
      data: repaired.length === 0 ? checked.data : schema.parse(given),
      render: (group, dates) => group.fromText(members, dates),
      unknownFields,
      repaired,
    };
  };
}
