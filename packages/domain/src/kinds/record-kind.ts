import type { z } from "zod";
import type { LegacyVersion } from "../record/legacy-view.ts";
import type { RecordForm, SubjectType } from "./record-form.ts";

export type TableColumns = {
  readonly name: string;
  readonly id: string;
  /** In the key. */
  readonly keyDate: string | null;
  readonly created: string;
  readonly hasProjection?: true;
};

export type KindFacts = {
  readonly type: string;
  readonly list: string;
  readonly scope: "export" | "end_users";
  readonly number: number;
  /** In `record_dates`; null: no date in its key. */
  readonly code: string | null;
  /** In order of insertion: the last makes a version readable. */
  readonly tables: readonly [...TableColumns[], TableColumns];
  readonly texts: readonly ["record"] | readonly ["head", "tail"];
  /** If its id names a person. */
  readonly idNames: SubjectType | null;
  readonly expiresBy: "dateCreated" | "dateUpdated";
  readonly form: Pick<RecordForm<never>, "fields" | "id" | "created" | "updated" | "columns"> & {
    readonly schema: z.ZodObject;
  };
  readonly public: z.ZodObject;
  readonly legacy?: Readonly<Record<LegacyVersion, readonly string[]>>;
};
