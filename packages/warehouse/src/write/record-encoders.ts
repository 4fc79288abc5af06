import {
  type EventType,
  type ExportRecord,
  KIND_OF,
  OWN_TABLE_OF,
  TABLES_OF,
} from "@conversation-export/domain";
import { CHANGES } from "../tables/changes.ts";
import { type EncodedTable, ENCODINGS } from "../tables/encodings.ts";
import { RECORD_DATES } from "../tables/record-dates.ts";
import { createTableBuffer, type TableBuffer } from "../tables/table-buffer.ts";

export const createEncoder = (type: EventType, initialBytes: number) => {
  const isDated = KIND_OF[type].code !== null;
  const names: EncodedTable[] = [...(isDated ? ([RECORD_DATES] as const) : []), CHANGES, ...TABLES_OF[type]];
  const encoders = names.map((name) => {
    const { columns, encode } = ENCODINGS[name];
    const bytes = name === OWN_TABLE_OF[type].name ? initialBytes : initialBytes >> 3;
    return { buffer: createTableBuffer(name, columns, bytes), encode };
  });
  return {
    /** In order of insertion: the last makes the version live. */
    tables: encoders.map(({ buffer }): TableBuffer => buffer),
    /** @throws TypeError for a record of another kind */
    encode(record: ExportRecord): void {
      if (record.type !== type) throw new TypeError(`a ${record.type} where a ${type} belongs`);
      for (const { buffer, encode } of encoders) encode(buffer, record);
    },
  };
};
