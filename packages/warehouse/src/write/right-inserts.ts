import { type ExportRecord, type Micros, RECORD_TABLES, type RightRow } from "@conversation-export/domain";
import { CHANGES } from "../tables/changes.ts";
import { RECORD_DATES } from "../tables/record-dates.ts";
import { type Batch, createBatch } from "./batch.ts";

const MAX_BYTES = 32 * 1024 * 1024;
const INITIAL_BYTES = 1 << 16;

type Wanted = { readonly record: ExportRecord; readonly tables: ReadonlySet<string> };

const HANDOFFS: ReadonlySet<string> = new Set([RECORD_DATES, CHANGES, "handoffs"]);
const OWN_TABLES: ReadonlySet<string> = new Set([
  RECORD_DATES,
  CHANGES,
  ...RECORD_TABLES.filter((table) => table !== "handoffs"),
]);

function wantedOf(rows: readonly RightRow[]): Wanted[] {
  const handoffs: Wanted[] = [];
  const records = new Set<ExportRecord>();
  for (const { entry, record } of rows) {
    if (entry === null) records.add(record);
    else handoffs.push({ record: { ...record, handoffs: [entry] }, tables: HANDOFFS });
  }
  const own = [...records].map((record) => ({
    record: { ...record, handoffs: [] },
    tables: OWN_TABLES,
  }));
  return [...handoffs, ...own];
}

export type RightBatch = Pick<Batch, "inserts"> & { readonly records: readonly ExportRecord[] };

/** Of one type, in the order of acknowledgement: what makes a version live comes last. */
export function* rightInserts(rows: readonly RightRow[], uploadedAt: Micros): Generator<RightBatch> {
  let open: { readonly batch: Batch; readonly records: ExportRecord[] } | undefined;
  let tables: ReadonlySet<string> = HANDOFFS;
  function* flush(): Generator<RightBatch> {
    if (open === undefined) return;
    const { batch, records } = open;
    const wanted = tables;
    batch.fillUpload(uploadedAt);
    yield {
      records,
      inserts: (from, to) => batch.inserts(from, to).filter(({ table }) => wanted.has(table)),
    };
    open = undefined;
  }
  for (const { record, tables: wanted } of wantedOf(rows)) {
    const isFull =
      open !== undefined && (open.batch.bytes() >= MAX_BYTES || open.batch.spansTooManyPartitions());
    if (isFull || wanted !== tables) yield* flush();
    tables = wanted;
    open ??= { batch: createBatch(record.type, INITIAL_BYTES), records: [] };
    open.batch.add(record);
    open.records.push(record);
  }
  yield* flush();
}
