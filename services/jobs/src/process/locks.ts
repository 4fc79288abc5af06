/**
 * Lock of deleting single rows, over all processes: a job keeps a row because of another one, which nobody
 * else may remove meanwhile.
 */
export const ROWS = "rows";
/** Lock of the ledger of upload windows, whose lines are read, changed and saved. */
export const LEDGER = "windows";
