/** A job may keep a row because of another one. */
export const ROWS = "rows";
/** The ledger is read, changed and saved. */
export const LEDGER = "windows";
