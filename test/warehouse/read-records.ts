import type { OpenParquet } from "@conversation-export/warehouse";
import { readParts } from "../outside/parquet-file.ts";

/** The ids of records as texts. */
export const idsOf = (records: readonly string[]): string[] =>
  records.map((record) => (JSON.parse(record) as { _id: string })._id);

/** The rows of a whole list as Parquet, each as a text of JSON. */
export const parquetFrom = async (open: OpenParquet): Promise<string[]> =>
  (await readParts(open)).rows.map((row) => JSON.stringify(row));
