import {
  type EventType,
  type ExportRecord,
  type Micros,
  monthOf,
  TABLE_FACTS,
  TABLES_OF,
} from "@conversation-export/domain";
import { createLandingRows, type LandingEvent } from "../tables/landing.ts";
import { createEncoder } from "./record-encoders.ts";

// ClickHouse accepts 100 partitions per block.
const MAX_PARTITIONS = 90;

export type Batch = {
  readonly type: EventType;
  add(record: ExportRecord, event?: LandingEvent): void;
  records(): number;
  bytes(): number;
  largest(): number;
  /** Keeps its memory: fresh pages cost more than filling them. */
  clear(): void;
  capacity(): number;
  spansTooManyPartitions(): boolean;
  /** µs. */
  fillUpload(instant: Micros): void;
  /** `to` is exclusive; in the order in which they must be acknowledged. */
  inserts(from: number, to: number): readonly TableInsert[];
};

export type TableInsert = {
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: number;
  readonly body: Buffer;
};

/** `initialBytes`: of the largest table. `landingDays`: how long events are kept. */
export function createBatch(
  type: EventType,
  initialBytes = 1 << 20,
  options: { readonly landingDays?: number | undefined } = {},
): Batch {
  const { tables: ownTables, encode } = createEncoder(type, initialBytes);
  const { landingDays } = options;
  const hasUpdates = TABLES_OF[type].some((table) => TABLE_FACTS[table].keyDate === "date_updated");
  const landing = landingDays === undefined ? null : createLandingRows(landingDays, initialBytes);
  const tables = landing === null ? ownTables : [landing.table, ...ownTables];
  // rowsBefore[t][i]: of table t before record i.
  const rowsBefore: number[][] = tables.map(() => [0]);
  const createdMonths = new Set<number>();
  const updatedMonths = new Set<number>();
  let records = 0;
  return {
    type,
    add(record, event) {
      encode(record);
      if (landing !== null) {
        if (event === undefined) throw new TypeError("a batch with landing needs the event");
        landing.add(record, event);
      }
      records += 1;
      for (let t = 0; t < tables.length; t += 1) rowsBefore[t]?.push(tables[t]?.rows() ?? 0);
      createdMonths.add(monthOf(record.dateCreated));
      if (hasUpdates) updatedMonths.add(monthOf(record.dateUpdated));
    },
    records: () => records,
    bytes: () => tables.reduce((sum, table) => sum + table.row.length, 0),
    largest: () => Math.max(...tables.map((table) => table.row.length)),
    clear() {
      landing?.clear();
      for (const table of ownTables) table.clear();
      for (const before of rowsBefore) before.length = 1;
      createdMonths.clear();
      updatedMonths.clear();
      records = 0;
    },
    capacity: () => tables.reduce((sum, table) => sum + table.row.capacity, 0),
    spansTooManyPartitions: () =>
      createdMonths.size >= MAX_PARTITIONS || updatedMonths.size >= MAX_PARTITIONS,
    fillUpload(instant) {
      landing?.fillUpload(instant);
      for (const table of ownTables) table.fillUpload(instant);
    },
    inserts(from, to) {
      const inserts: TableInsert[] = [];
      for (const [t, table] of tables.entries()) {
        const first = rowsBefore[t]?.[from] ?? 0;
        const end = rowsBefore[t]?.[to] ?? table.rows();
        if (end === first) continue;
        inserts.push({
          table: table.table,
          columns: table.columns,
          rows: end - first,
          body: table.row.view(table.startOf(first), table.startOf(end)),
        });
      }
      return inserts;
    },
  };
}
