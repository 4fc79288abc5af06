/**
 * Settings by which a query could show rows that a view leaves out, with safe values; null: the default, empty. Readers
 * must not change them.
 */
export const FIXED_SETTINGS: Readonly<Record<string, string | null>> = {
  /** Empties the tables that say what is left out. */
  additional_table_filters: null,
  /** 0 shows deleted rows. */
  apply_deleted_mask: "1",
  // `break` with a limit cuts off the set of what is left out.
  group_by_overflow_mode: "throw",
  join_overflow_mode: "throw",
  read_overflow_mode: "throw",
  read_overflow_mode_leaf: "throw",
  set_overflow_mode: "throw",
  timeout_overflow_mode: "throw",
  timeout_overflow_mode_leaf: "throw",
  transfer_overflow_mode: "throw",
};
