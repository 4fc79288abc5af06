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

export type RecordEncoder = {
  /** In order of insertion: the last makes the version live. */
  readonly tables: readonly TableBuffer[];
  /** @throws TypeError for a record of another kind */
  encode(record: ExportRecord): void;
};

export const createEncoder = (type: EventType, initialBytes: number): RecordEncoder => {
  const isDated = KIND_OF[type].code !== null;
  const names: EncodedTable[] = [...(isDated ? ([RECORD_DATES] as const) : []), CHANGES, ...TABLES_OF[type]];
  const encoders = names.map((name) => {
    const { columns, encode } = ENCODINGS[name];
    const bytes = name === OWN_TABLE_OF[type].name ? initialBytes : initialBytes >> 3;
    return { buffer: createTableBuffer(name, columns, bytes), encode };
  });
  return {
    tables: encoders.map(({ buffer }) => buffer),
    encode(record) {
      if (record.type !== type) throw new TypeError(`a ${record.type} where a ${type} belongs`);
      for (const { buffer, encode } of encoders) encode(buffer, record);
    },
  };
};
