/** Receives values by column; `RowBinary` ignores the names, so encoders look nothing up. */
export type ColumnWriter = {
  string(value: string, column: string): void;
  nullableUint8(value: number | boolean | null, column: string): void;
  nullableFloat64(value: number | null, column: string): void;
};

/** Placeholder for a record where only the names of columns are needed. */
const BLANK = {} as never;

/** Names of the columns that `write` writes, in its order. */
export const columnNames = (write: (to: ColumnWriter, from: never) => void): readonly string[] => {
  const names: string[] = [];
  const note = (_: unknown, column: string): void => {
    names.push(column);
  };
  write({ string: note, nullableUint8: note, nullableFloat64: note }, BLANK);
  return names;
};
