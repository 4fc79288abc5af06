/** For deleting single rows: a job may keep a row because of another one. */
export const ROWS = "rows";
/** For reading, changing and saving the ledger of upload windows. */
export const LEDGER = "windows";
