import type { z } from "zod";
import type { Micros } from "../event/timestamp.ts";
import type { Field } from "../record/record-fields.ts";
import type { Dates, FieldGroup } from "../record/render.ts";
import type { HandoffEntry } from "./handoffs.ts";

/** What the texts of a record are rendered from. */
export type Draft = {
  readonly dateCreated: Micros;
  /** That of creation where a record has no other. */
  readonly dateUpdated: Micros;
  /** Renders fields of the event's data, all from its own text. */
  readonly render: (group: FieldGroup, dates: Dates) => string;
};

/** What names a person. */
export type SubjectType = "chatter_id" | "end_user_id" | "email";

/** As columns hold it; null or undefined: an empty text, or NULL. */
export type ColumnValue = string | number | boolean | readonly string[] | null | undefined;

/** A column of the kind's own table beside those of all kinds. */
export type OwnColumn<Data> = {
  readonly name: string;
  /** `label`: a text with few values; `byte`: a number from 0 to 255; `texts`: for look-ups only, no column of views. */
  readonly type: "id" | "text" | "label" | "texts" | "flag" | "number" | "byte";
  /** @param record the first text: it has all digits of numbers */
  readonly of: (data: Data, record: string) => ColumnValue;
  /** What its values name. */
  readonly person?: SubjectType;
  /** For analysts, of a column that is no field of the record. */
  readonly comment?: string;
};

type NamedField<Data, Value> = { readonly name: string; readonly of: (data: Data) => Value };

/** How the data of one kind of event becomes a record. */
export type RecordForm<Data, Read extends keyof Data & string = keyof Data & string> = {
  readonly schema: z.ZodObject & z.ZodType<Data>;
  readonly fields: readonly Field[];
  /** The fields whose values are needed; of the others only the text is. */
  readonly reads: readonly Read[];
  readonly id: NamedField<Pick<Data, Read>, string>;
  /** The id of its conversation; null: it belongs to none. */
  readonly conversationOf: ((data: Pick<Data, Read>) => string) | null;
  readonly created: NamedField<Pick<Data, Read>, string>;
  /** null: the record has none; one that is not given or empty is that of creation. */
  readonly updated: NamedField<Pick<Data, Read>, string | null | undefined> | null;
  readonly columns: readonly OwnColumn<Pick<Data, Read>>[];
  /** null: a date inside it is none. */
  readonly finish: (data: Pick<Data, Read>, draft: Draft) => Finished | null;
};

/** The public JSON in pieces, as in `ExportRecord`. */
export type Finished = {
  readonly beforeUpload: string;
  readonly afterUpload: string | null;
  readonly handoffs?: readonly HandoffEntry[];
  readonly tail?: string;
  /** Fields with a value outside the documented set; at most 20. */
  readonly nonstandard?: readonly string[];
};
