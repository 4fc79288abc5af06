/** Held to delete single rows: a job may keep a row because of another, which must not go meanwhile. */
export const ROWS = "rows";
/** Held while lines of the ledger are read, changed and saved. */
export const LEDGER = "windows";
