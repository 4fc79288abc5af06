import type { Draft } from "../kinds/record-form.ts";

export type EventData<Data> = {
  readonly data: Data;
  readonly render: Draft["render"];
  readonly unknownFields: readonly string[];
  /** Fields with half a surrogate pair. */
  readonly repaired: readonly string[];
};
