import type { z } from "zod";
import type { LegacyVersion } from "../record/legacy-view.ts";
import type { RecordForm, SubjectType } from "./record-form.ts";

/** A table that holds rows of records: the columns that name a record and date its rows. */
export type TableColumns = {
  readonly name: string;
  /** The record's id. */
  readonly id: string;
  /** The date in the key of the table; null: the key has none. */
  readonly keyDate: string | null;
  /** When the record was created. */
  readonly created: string;
};

/** What every mechanism reads of a kind of record. */
export type KindFacts = {
  /** `type` of its events. */
  readonly type: string;
  /** Its list, which has a topic and a watermark. */
  readonly list: string;
  /** What a key needs to read it. */
  readonly scope: "export" | "end_users";
  /** Its number in the feed of changes. */
  readonly number: number;
  /** Its code in the table of dates; null: the key of its own table has no date. */
  readonly code: string | null;
  /** Its tables in the order of insertion; the row of the last one, its own, makes a version readable. */
  readonly tables: readonly [...TableColumns[], TableColumns];
  /** The columns of its own table that hold the public JSON. */
  readonly texts: readonly ["record"] | readonly ["head", "tail"];
  /** What its id names, beside the record; null: no person. */
  readonly idNames: SubjectType | null;
  /** The date by which a client's retention removes it. */
  readonly expiresBy: "dateCreated" | "dateUpdated";
  readonly form: Pick<RecordForm<never>, "fields" | "id" | "created" | "updated" | "columns"> & {
    readonly schema: z.ZodObject;
  };
  /** The records as they leave. */
  readonly public: z.ZodObject;
  /** Fields of each version before v2. They leave in the order of the stored record. */
  readonly legacy?: Readonly<Record<LegacyVersion, readonly string[]>>;
};
