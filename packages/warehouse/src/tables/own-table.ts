import {
  type ColumnValue,
  type ExportRecord,
  type OwnColumn,
  ownTableOf,
  RECORD_KINDS,
  type RecordKind,
} from "@conversation-export/domain";
import type { RowBinary } from "./row-binary.ts";
import { type Encoding, STAMP_LENGTH, type TableBuffer, writeVersion } from "./table-buffer.ts";

const writeValue = (row: RowBinary, type: OwnColumn<never>["type"], value: ColumnValue): void => {
  switch (type) {
    case "id":
    case "text":
    case "label":
      return row.string((value ?? "") as string);
    case "flag":
    case "byte":
      return row.nullableUint8((value ?? null) as number | boolean | null);
    case "number":
      return row.nullableFloat64((value ?? null) as number | null);
    case "texts": {
      const texts = value as readonly string[];
      row.varUint(texts.length);
      for (const text of texts) row.string(text);
    }
  }
};

export const ownEncoding = (kind: RecordKind): Encoding => {
  const { form, texts } = RECORD_KINDS[kind];
  const { id, keyDate } = ownTableOf(kind);
  const own: readonly OwnColumn<never>[] = form.columns;
  const types = own.map(({ type }) => type);
  const isDated = keyDate !== null;
  const isUpdated = form.updated !== null;
  const hasTail = texts.length > 1;
  return {
    columns: [
      "client_id",
      ...(isDated ? ["date_created"] : []),
      id,
      "version",
      "exported_at",
      "uploaded_at",
      ...(isDated ? [] : ["date_created"]),
      ...(isUpdated ? ["date_updated"] : []),
      ...own.map(({ name }) => name),
      ...texts,
    ],
    encode(table: TableBuffer, record: ExportRecord) {
      const { row } = table;
      row.string(record.clientId);
      if (isDated) row.uint64(record.dateCreated);
      row.string(record.id);
      writeVersion(row, record.version);
      row.uint64(record.version.exportedAt);
      table.uploadedAt();
      if (!isDated) row.uint64(record.dateCreated);
      if (isUpdated) row.uint64(record.dateUpdated);
      for (let at = 0; at < types.length; at += 1) {
        writeValue(row, types[at] ?? "text", record.columns[at]);
      }
      const { beforeUpload, afterUpload } = record;
      if (afterUpload === null) row.string(beforeUpload);
      else table.stampAt(row.stringWithHole(beforeUpload, STAMP_LENGTH, afterUpload));
      if (hasTail) row.string(record.tail);
      table.endRow();
    },
  };
};
