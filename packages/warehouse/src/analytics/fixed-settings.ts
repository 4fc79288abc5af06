/** Readers must not change them: other values show rows that views leave out. null: the default, empty. */
export const FIXED_SETTINGS: Readonly<Record<string, string | null>> = {
  /** Empties the tables of what is left out. */
  additional_table_filters: null,
  /** 0 shows deleted rows. */
  apply_deleted_mask: "1",
  // `break` cuts off the set of what is left out.
  group_by_overflow_mode: "throw",
  join_overflow_mode: "throw",
  read_overflow_mode: "throw",
  read_overflow_mode_leaf: "throw",
  set_overflow_mode: "throw",
  timeout_overflow_mode: "throw",
  timeout_overflow_mode_leaf: "throw",
  transfer_overflow_mode: "throw",
};
