import type { z } from "zod";
import type { Micros } from "../event/timestamp.ts";
import type { Version } from "../event/version.ts";
import type { ExportRecord } from "./export-record.ts";
import type { Field } from "./record-fields.ts";
import type { Dates, FieldGroup } from "./render.ts";

/** What every record has, and what its texts are rendered from. */
export type Draft = {
  readonly clientId: string;
  readonly id: string;
  readonly dateCreated: Micros;
  /** That of creation where a record has no other. */
  readonly dateUpdated: Micros;
  readonly version: Version;
  /** Renders fields of the event's data, all from its own text. */
  readonly render: (group: FieldGroup, dates: Dates) => string;
};

type DateField<Data, Text> = { readonly name: string; readonly of: (data: Data) => Text };

/** How the data of one kind of event becomes a record. */
export type RecordForm<Data, Read extends keyof Data & string = keyof Data & string> = {
  readonly schema: z.ZodObject & z.ZodType<Data>;
  readonly fields: readonly Field[];
  /** The fields whose values are needed; of the others only the text is. */
  readonly reads: readonly Read[];
  readonly idOf: (data: Pick<Data, Read>) => string;
  readonly created: DateField<Pick<Data, Read>, string>;
  /** null: the record has none; one that is not given or empty is that of creation. */
  readonly updated: DateField<Pick<Data, Read>, string | null | undefined> | null;
  /** null: a date inside it is none. */
  readonly finish: (data: Pick<Data, Read>, draft: Draft) => Finished | null;
};

export type Finished = {
  readonly record: ExportRecord;
  /** Fields with a value outside the documented set; at most 20. */
  readonly nonstandard: readonly string[];
};
