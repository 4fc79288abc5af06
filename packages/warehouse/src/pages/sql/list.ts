import type { ClickHouseSettings } from "@clickhouse/client";
import type { Candidates } from "./identity-sql.ts";
import type { RangedRows, ReadShape } from "./page-sql.ts";

/** A list of records that is read in ranges of a date. */
export type List = {
  readonly name:
    | "conversations_by_creation"
    | "conversations_by_update"
    | "messages_by_creation"
    | "messages_of_conversation";
  readonly rows: RangedRows;
  readonly candidates: Candidates;
  /** A page of the records of a range; see `pageRows`. */
  readonly page: (shape: ReadShape) => string;
  /** SELECT of the public JSON of all records of a range in order, as `record`. */
  readonly records: (shape: ReadShape) => string;
  /** SELECT of the dates of the records of a range in order, as `d`. */
  readonly dates: (shape: ReadShape) => string;
  /** Columns of text that make up a record of a page. */
  readonly columns: readonly string[];
  /** Keys of a range for each record that is read, as a rule. */
  readonly keysPerRecord: number;
  /** A range with a wrong end is cheap to find out. */
  readonly isGuessed?: true;
  readonly settings?: ClickHouseSettings;
  /** Its records are not read in the order of their table: a range is held in memory. */
  readonly isSorted?: true;
};
