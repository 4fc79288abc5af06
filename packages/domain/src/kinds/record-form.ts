import type { z } from "zod";
import type { Micros } from "../event/timestamp.ts";
import type { Field } from "../record/record-fields.ts";
import type { Dates, FieldGroup } from "../record/render.ts";
import type { HandoffEntry } from "./handoffs.ts";

export type Draft = {
  readonly dateCreated: Micros;
  readonly dateUpdated: Micros;
  readonly render: (group: FieldGroup, dates: Dates) => string;
};

export type SubjectType = "chatter_id" | "end_user_id" | "email";

export type ColumnValue = string | number | boolean | readonly string[] | null | undefined;

export type OwnColumn<Data> = {
  readonly name: string;
  /** `label`: few values; `byte`: 0 to 255; `texts`: for look-ups, not in views. */
  readonly type: "id" | "text" | "label" | "texts" | "flag" | "number" | "byte";
  /** `record`: the first text, with all digits of numbers. */
  readonly of: (data: Data, record: string) => ColumnValue;
  readonly person?: SubjectType;
  readonly comment?: string;
};

type NamedField<Data, Value> = { readonly name: string; readonly of: (data: Data) => Value };

export type RecordForm<Data, Read extends keyof Data & string = keyof Data & string> = {
  readonly schema: z.ZodObject & z.ZodType<Data>;
  readonly fields: readonly Field[];
  /** Whose values are needed, not only their text. */
  readonly reads: readonly Read[];
  readonly id: NamedField<Pick<Data, Read>, string>;
  readonly conversationOf: ((data: Pick<Data, Read>) => string) | null;
  readonly created: NamedField<Pick<Data, Read>, string>;
  /** Absent or empty: that of creation. */
  readonly updated: NamedField<Pick<Data, Read>, string | null | undefined> | null;
  readonly columns: readonly OwnColumn<Pick<Data, Read>>[];
  /** null: a date is invalid. */
  readonly finish: (data: Pick<Data, Read>, draft: Draft) => Finished | null;
};

export type Finished = {
  readonly beforeUpload: string;
  readonly afterUpload: string | null;
  readonly handoffs?: readonly HandoffEntry[];
  readonly tail?: string;
  readonly nonstandard?: readonly string[];
};
