import type { ClickHouseSettings } from "@clickhouse/client";
import { type DatedKind, type DatedList, ownTableOf } from "@conversation-export/domain";
import type { Candidates } from "./identity-sql.ts";
import { datesOf, type RangedRows, rangeOf, type ReadShape } from "./page-sql.ts";

export type List = {
  readonly name: `${DatedList}_by_creation` | "conversations_by_update" | "messages_of_conversation";
  readonly rows: RangedRows;
  readonly candidates: Candidates;
  readonly page: (shape: ReadShape) => string;
  /** The public JSON as `record`, in order. */
  readonly records: (shape: ReadShape) => string;
  readonly dates: (shape: ReadShape) => string;
  readonly columns: readonly string[];
  readonly keysPerRecord: number;
  /** A wrong end is cheap to find out. */
  readonly isGuessed?: true;
  readonly settings?: ClickHouseSettings;
  readonly isSorted?: true;
};

export const ownCandidates = (kind: DatedKind): Candidates => {
  const { name: table, id, created } = ownTableOf(kind);
  return { kind, id, table, range: rangeOf(created, id), dates: datesOf(created) };
};
