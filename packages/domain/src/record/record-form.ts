import type { z } from "zod";
import type { Rejected } from "../event/outcome.ts";
import type { Micros } from "../event/timestamp.ts";
import type { Version } from "../event/version.ts";
import type { ExportRecord } from "./export-record.ts";
import type { Field } from "./record-fields.ts";
import { type Dates, type FieldGroup, fieldTexts } from "./render.ts";

/** What every record has, and what its texts are rendered from. */
export type Draft = {
  readonly clientId: string;
  readonly id: string;
  readonly dateCreated: Micros;
  /** That of creation where a record has no other. */
  readonly dateUpdated: Micros;
  readonly version: Version;
  /** `data` of the event. */
  readonly given: Readonly<Record<string, unknown>>;
  /** The text of `given`; null when its parsed values print as they came. */
  readonly exactText: string | null;
};

/** A date of a record and the name of its field. */
type DateField<Data, Text> = { readonly name: string; readonly of: (data: Data) => Text };

/** How the data of one kind of event becomes a record. */
export type RecordForm<Data> = {
  readonly schema: z.ZodType<Data>;
  readonly fields: readonly Field[];
  readonly idOf: (data: Data) => string;
  readonly created: DateField<Data, string>;
  /** null: the record has none; one that is not given is that of creation. */
  readonly updated: DateField<Data, string | null | undefined> | null;
  readonly finish: (data: Data, draft: Draft) => Finished | Rejected;
};

export type Finished = {
  readonly kind: "finished";
  readonly record: ExportRecord;
  /** Fields with a value outside the documented set; at most 20. */
  readonly unusual: readonly string[];
};

/** Renders groups of fields of one record. */
export function rendererOf({ given, exactText }: Draft, dates: Dates): (group: FieldGroup) => string {
  if (exactText === null) return (group) => group.fromValues(given, dates);
  const members = fieldTexts(exactText);
  return (group) => group.fromText(members, dates);
}
