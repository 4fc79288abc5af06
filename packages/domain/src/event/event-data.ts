import type { Draft } from "../kinds/record-form.ts";

/** The data of an event that fits its schema. */
export type EventData<Data> = {
  readonly data: Data;
  readonly render: Draft["render"];
  /** Paths of fields that the specification does not know. */
  readonly unknownFields: readonly string[];
  /** Fields that held half a surrogate pair. */
  readonly repaired: readonly string[];
};
