import { crc32c } from "@node-rs/crc32";

const number = (value: number): Buffer => {
  let rest = value >= 0 ? BigInt(value) * 2n : -BigInt(value) * 2n - 1n;
  const bytes: number[] = [];
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(rest)]);
};

const bytes = (part: Buffer | string | null): Buffer[] =>
  part === null ? [number(-1)] : [number(Buffer.byteLength(part)), Buffer.from(part)];

export type TestRecord = {
  readonly offset: number;
  readonly key?: Buffer | string | null;
  readonly value?: Buffer | string | null;
  readonly time?: number;
  readonly headers?: readonly (readonly [string, string | null])[];
};

/** Offsets and times relative to 0. */
export const packRecords = (records: readonly TestRecord[]): Buffer =>
  Buffer.concat(
    records.flatMap(({ offset, key = null, value = null, time = 0, headers = [] }) => {
      const parts = [
        Buffer.alloc(1),
        number(time),
        number(offset),
        ...bytes(key),
        ...bytes(value),
        number(headers.length),
        ...headers.flatMap(([name, text]) => [...bytes(name), ...bytes(text)]),
      ];
      return [number(parts.reduce((sum, part) => sum + part.length, 0)), ...parts];
    }),
  );

/** `attributes`: codec, 8 broker time, 16 transactional, 32 control. */
export const packBatch = (batch: {
  readonly first: number;
  readonly last: number;
  readonly count?: number;
  readonly attributes?: number;
  readonly producer?: number;
  readonly firstTime?: number;
  readonly maxTime?: number;
  readonly records: Buffer;
}): Buffer => {
  const head = Buffer.alloc(61);
  head.writeBigInt64BE(BigInt(batch.first), 0);
  head.writeInt32BE(61 - 12 + batch.records.length, 8);
  head.writeInt8(2, 16);
  head.writeInt16BE(batch.attributes ?? 0, 21);
  head.writeInt32BE(batch.last - batch.first, 23);
  head.writeBigInt64BE(BigInt(batch.firstTime ?? 0), 27);
  head.writeBigInt64BE(BigInt(batch.maxTime ?? 0), 35);
  head.writeBigInt64BE(BigInt(batch.producer ?? -1), 43);
  head.writeInt32BE(batch.count ?? batch.last - batch.first + 1, 57);
  const whole = Buffer.concat([head, batch.records]);
  whole.writeUInt32BE(crc32c(whole.subarray(21)), 17);
  return whole;
};

export const packMarker = (offset: number, producer: number, type: "abort" | "commit"): Buffer =>
  packBatch({
    first: offset,
    last: offset,
    attributes: 0x30,
    producer,
    records: packRecords([{ offset: 0, key: Buffer.from([0, 0, 0, type === "abort" ? 0 : 1]), value: "" }]),
  });
