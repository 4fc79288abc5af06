import type { z } from "zod";
import type { LegacyVersion } from "../record/legacy-view.ts";
import type { RecordForm, SubjectType } from "./record-form.ts";

/** Names of columns. */
export type TableColumns = {
  readonly name: string;
  readonly id: string;
  /** Date in the table's key, if any. */
  readonly keyDate: string | null;
  readonly created: string;
};

export type KindFacts = {
  /** Of its events. */
  readonly type: string;
  /** Has a topic and a watermark. */
  readonly list: string;
  /** What a key needs to read it. */
  readonly scope: "export" | "end_users";
  /** In the change feed. */
  readonly number: number;
  /** In `record_dates`; null: its own key has no date. */
  readonly code: string | null;
  /** In order of insertion; the row of the last makes a version readable. */
  readonly tables: readonly [...TableColumns[], TableColumns];
  /** Columns of its own table with the public JSON. */
  readonly texts: readonly ["record"] | readonly ["head", "tail"];
  /** What its id names, if a person. */
  readonly idNames: SubjectType | null;
  /** The date that retention compares. */
  readonly expiresBy: "dateCreated" | "dateUpdated";
  readonly form: Pick<RecordForm<never>, "fields" | "id" | "created" | "updated" | "columns"> & {
    readonly schema: z.ZodObject;
  };
  /** As its records leave. */
  readonly public: z.ZodObject;
  /** Fields of versions before v2; they leave in the order of the stored record. */
  readonly legacy?: Readonly<Record<LegacyVersion, readonly string[]>>;
};
