import { correctionOf, type ExportRecord, type RightRow } from "@conversation-export/domain";
import { type RecordReader, rowDigest } from "@conversation-export/warehouse";

/** @throws WarehouseError */
export const createPreview =
  ({ reader }: { readonly reader: Pick<RecordReader, "stored"> }) =>
  async (records: readonly ExportRecord[], signal: AbortSignal): Promise<(readonly RightRow[])[]> => {
    const stored = await reader.stored(records, signal);
    return records.map((record, at) => {
      const { insert } = correctionOf({
        exports: [record],
        untouchable: new Set(),
        stored: stored[at] ?? [],
        isDeletable: () => false,
        isOnItsWay: () => false,
        digestOf: rowDigest,
      });
      return insert;
    });
  };
