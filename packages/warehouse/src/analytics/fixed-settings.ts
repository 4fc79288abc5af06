/**
 * Settings of a query that reach into a view and show rows that it leaves out, with the values under which it
 * leaves them out; null: its default, which is empty. Who reads the views must not change them.
 */
export const FIXED_SETTINGS: Readonly<Record<string, string | null>> = {
  /** Empties the tables that say what is left out. */
  additional_table_filters: null,
  /** 0 shows deleted rows. */
  apply_deleted_mask: "1",
  // With `break` and a limit the set of what is left out is cut off.
  group_by_overflow_mode: "throw",
  join_overflow_mode: "throw",
  read_overflow_mode: "throw",
  read_overflow_mode_leaf: "throw",
  set_overflow_mode: "throw",
  timeout_overflow_mode: "throw",
  timeout_overflow_mode_leaf: "throw",
  transfer_overflow_mode: "throw",
};
