import {
  END_OF_TIME,
  type ExportRecord,
  type Micros,
  MICROS_IN_DAY,
  subjectsOf,
  withoutSchemaPrefix,
} from "@conversation-export/domain";
import type { RowBinary } from "./row-binary.ts";
import { createTableBuffer } from "./table-buffer.ts";

type HeaderValue = Buffer | string | null;

/** `timestamp`: ms. `offset`: of a file, the line. */
export type LandingEvent = {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, HeaderValue | readonly HeaderValue[] | undefined>>;
  readonly timestamp: number;
};

const COLUMNS = [
  "topic",
  "partition",
  "offset",
  "type",
  "client_id",
  "record_id",
  "conversation_id",
  "date_created",
  "subjects",
  "key",
  "headers",
  "payload",
  "bus_time",
  "uploaded_at",
  "expires_on",
] as const;

const END_OF_TIME_MS = END_OF_TIME / 1_000;
const NOTHING = Buffer.alloc(0);

const writeBytes = (row: RowBinary, value: HeaderValue): void => {
  if (typeof value === "string") row.string(value);
  else row.stringOfBytes(value ?? NOTHING);
};

/** Decoding treats headers without a value as absent. */
const writeHeaders = (row: RowBinary, headers: LandingEvent["headers"]): void => {
  let count = 0;
  for (const name in headers) {
    const value = headers[name];
    if (Array.isArray(value)) count += value.length;
    else if (value !== null && value !== undefined) count += 1;
  }
  row.varUint(count);
  for (const name in headers) {
    const value = headers[name];
    if (value === null || value === undefined) continue;
    for (const one of typeof value === "string" || Buffer.isBuffer(value) ? [value] : value) {
      row.string(name);
      writeBytes(row, one);
    }
  }
};

export const headersOfLanding = (
  rows: readonly (readonly [name: string, value: string])[],
): Record<string, string | string[]> => {
  const headers = new Map<string, string | string[]>();
  for (const [name, value] of rows) {
    const known = headers.get(name);
    if (known === undefined) headers.set(name, value);
    else if (typeof known === "string") headers.set(name, [known, value]);
    else known.push(value);
  }
  return Object.fromEntries(headers);
};

export const createLandingRows = (days: number, initialBytes: number) => {
  const table = createTableBuffer("landing", COLUMNS, initialBytes);
  const { row } = table;
  const expiryPlaces: number[] = [];
  return {
    table,
    add(record: ExportRecord, event: LandingEvent): void {
      row.string(event.topic);
      row.uint16(event.partition);
      row.uint64(event.offset);
      row.string(record.type);
      row.string(record.clientId);
      row.string(record.id);
      row.string(record.conversationId);
      row.uint64(record.dateCreated);
      const subjects = subjectsOf(record);
      row.varUint(subjects.length);
      for (const subject of subjects) row.string(subject);
      row.stringOfBytes(event.key ?? NOTHING);
      writeHeaders(row, event.headers);
      // ClickHouse reads the payload as JSON.
      row.stringOfBytes(withoutSchemaPrefix(event.value ?? NOTHING));
      // By the producer's clock, so maybe out of range.
      row.uint64(Math.min(Math.max(0, event.timestamp), END_OF_TIME_MS));
      table.uploadedAt();
      expiryPlaces.push(row.length);
      row.uint16(0);
      table.endRow();
    },
    fillUpload(instant: Micros): void {
      table.fillUpload(instant);
      const expiresOn = Math.floor(instant / MICROS_IN_DAY) + days + 1;
      for (const at of expiryPlaces) row.fillUint16(at, expiresOn);
    },
    clear(): void {
      table.clear();
      expiryPlaces.length = 0;
    },
  };
};
