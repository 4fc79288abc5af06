import type { Field } from "../record/record-fields.ts";
import type { RecordForm } from "../kinds/record-form.ts";
import { fieldTexts } from "../record/render.ts";
import type { Envelope } from "./envelope.ts";
import type { EventData } from "./event-data.ts";
import { countKeys } from "../json/json-object.ts";
import { countKeyTexts, replaceHalfPairs, withoutRepeatedKeys } from "../json/json-text.ts";
import { unknownFieldsBeside } from "../record/unknown-fields.ts";

const NOTHING: readonly string[] = [];

type Given = {
  readonly given: Record<string, unknown>;
  readonly text: string;
  readonly repaired: readonly string[];
};

function withoutHalfPairs({ data, dataText }: Envelope, fields: readonly Field[]): Given {
  const before = dataText();
  const text = replaceHalfPairs(before);
  if (text === before) return { given: data, text, repaired: NOTHING };
  const given = JSON.parse(text) as Record<string, unknown>;
  const isChanged = (name: string): boolean => JSON.stringify(given[name]) !== JSON.stringify(data[name]);
  return { given, text, repaired: fields.map(([name]) => name).filter(isChanged) };
}

/** The fallback reader. */
export function parsedDataReader<Data, Read extends keyof Data & string>(form: RecordForm<Data, Read>) {
  const { schema, fields } = form;
  const noteUnknown = unknownFieldsBeside(fields);
  return (envelope: Envelope): EventData<Pick<Data, Read>> | undefined => {
    const keys = countKeys(envelope.data);
    if (keys === undefined) return undefined;
    const checked = schema.safeParse(envelope.data);
    if (!checked.success) return undefined;
    // Only now, since an id with half a pair is rejected above.
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
