import type { ConversationRecord, ExportRecord, Micros, RightRow } from "@conversation-export/domain";
import { type Batch, createBatch } from "./batch.ts";

const MAX_BYTES = 32 * 1024 * 1024;
const INITIAL_BYTES = 1 << 16;

type Wanted = { readonly record: ExportRecord; readonly tables: ReadonlySet<string> };

const OWN_TABLES: ReadonlySet<string> = new Set([
  "conversation_updates",
  "conversations",
  "messages",
  "end_users",
]);
const HANDOFFS: ReadonlySet<string> = new Set(["handoffs"]);

/** What has to be encoded for rows that are wanted one by one: handoffs by themselves, and whole records without them. */
function wantedOf(rows: readonly RightRow[]): Wanted[] {
  const handoffs: Wanted[] = [];
  const records = new Set<ExportRecord>();
  for (const { entry, record } of rows) {
    if (entry === null) records.add(record);
    else
      handoffs.push({ record: { ...(record as ConversationRecord), handoffs: [entry] }, tables: HANDOFFS });
  }
  const own = [...records].map((record) => ({
    record: record.type === "conversation.exported" ? { ...record, handoffs: [] } : record,
    tables: OWN_TABLES,
  }));
  return [...handoffs, ...own];
}

/** Records of which some tables are written. */
export type RightBatch = Pick<Batch, "inserts"> & { readonly records: readonly ExportRecord[] };

/**
 * What to insert for right rows of one type of record, with one instant of upload, in the order in which it must be
 * acknowledged: handoffs first, the rows that make a version live last. A conversation's own row goes with its entry
 * of the update index.
 */
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
