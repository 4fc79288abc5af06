import { DuckDBInstance } from "@duckdb/node-api";

/** Rows of the last statement. */
export const inDuckDb = async (file: string, ...statements: string[]): Promise<unknown[][]> => {
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  try {
    let rows: unknown[][] = [];
    for (const sql of statements) rows = (await connection.runAndReadAll(sql)).getRowsJson();
    return rows;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
};
