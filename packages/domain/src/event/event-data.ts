import type { Draft } from "../kinds/record-form.ts";

export type EventData<Data> = {
  readonly data: Data;
  readonly render: Draft["render"];
  /** Paths that the specification does not know. */
  readonly unknownFields: readonly string[];
  /** Fields that held half a surrogate pair. */
  readonly repaired: readonly string[];
};
