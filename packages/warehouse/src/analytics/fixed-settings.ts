/**
 * Settings of a query that reach into a view and show rows that it leaves out, with the values under which it
 * leaves them out; null: its default, which is empty. Who reads the views must not change them.
 */
export const FIXED_SETTINGS: Readonly<Record<string, string | null>> = {
  /** Empties the tables that tell what is left out. */
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

/**
 * The statement that fixes the settings for a user, who keeps every other setting and profile.
 *
 * @param on the `ON CLUSTER` clause, or nothing
 */
export const fixingStatement = (user: string, on: string): string => {
  const settings = Object.entries(FIXED_SETTINGS).map(([name, value]) => {
    const set = value === null ? "" : ` = ${/^\d+$/.test(value) ? value : `'${value}'`}`;
    return `  ${name}${set} CONST`;
  });
  return `ALTER USER ${user} ${on} MODIFY SETTINGS\n${settings.join(",\n")}`;
};
