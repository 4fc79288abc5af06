/** The compact protocol, as far as Parquet footers need it. */
const STOP = 0;
const STRUCT = 12;
const BINARY = 8;
const I64 = 6;
const LIST = 9;
/** In a list; booleans of a struct lie in their field's header. */
const FIXED_SIZES: Readonly<Record<number, number>> = { 1: 1, 2: 1, 3: 1, 7: 8 };
/** Zigzag varints. */
const NUMBERS: readonly number[] = [4, 5, I64];

type Cursor = { readonly bytes: Buffer; at: number };

const readByte = (from: Cursor): number => {
  const byte = from.bytes.readUInt8(from.at);
  from.at += 1;
  return byte;
};

const readVarint = (from: Cursor): number => {
  let value = 0;
  for (let scale = 1; ; scale *= 128) {
    const byte = readByte(from);
    value += (byte & 127) * scale;
    if (byte < 128) return value;
  }
};

const readZigzag = (from: Cursor): number => {
  const value = readVarint(from);
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
};

export const readNumber = (bytes: Buffer): number => readZigzag({ bytes, at: 0 });

/** null: the struct ends. */
const readField = (from: Cursor, last: number): { readonly id: number; readonly type: number } | null => {
  const header = readByte(from);
  if (header === STOP) return null;
  const delta = header >> 4;
  return { id: delta === 0 ? readZigzag(from) : last + delta, type: header & 15 };
};

const readListHeader = (from: Cursor): { readonly size: number; readonly type: number } => {
  const header = readByte(from);
  const size = header >> 4;
  return { size: size === 15 ? readVarint(from) : size, type: header & 15 };
};

const skipBytes = (from: Cursor, count: number): void => {
  if (from.at + count > from.bytes.length) throw new RangeError("the bytes end early");
  from.at += count;
};

const skipElement = (from: Cursor, type: number): void => {
  const fixed = FIXED_SIZES[type];
  if (fixed !== undefined) skipBytes(from, fixed);
  else if (NUMBERS.includes(type)) readVarint(from);
  else if (type === BINARY) skipBytes(from, readVarint(from));
  else if (type === LIST) {
    const list = readListHeader(from);
    for (let index = 0; index < list.size; index += 1) skipElement(from, list.type);
  } else if (type === STRUCT) {
    for (let field = readField(from, 0); field !== null; field = readField(from, field.id))
      skipField(from, field.type);
  } else throw new RangeError(`type ${type} is not known`);
};

const skipField = (from: Cursor, type: number): void => {
  if (type > 2) skipElement(from, type);
};

export type Field = { readonly id: number; readonly type: number; readonly bytes: Buffer };

/** @throws RangeError */
export const readStruct = (bytes: Buffer): readonly Field[] => {
  const from = { bytes, at: 0 };
  const fields: Field[] = [];
  for (let field = readField(from, 0); field !== null; field = readField(from, field.id)) {
    const start = from.at;
    skipField(from, field.type);
    fields.push({ ...field, bytes: bytes.subarray(start, from.at) });
  }
  return fields;
};

export const readList = (bytes: Buffer): readonly Buffer[] => {
  const from = { bytes, at: 0 };
  const { size, type } = readListHeader(from);
  return Array.from({ length: size }, () => {
    const start = from.at;
    skipElement(from, type);
    return bytes.subarray(start, from.at);
  });
};

const varint = (value: number): Buffer => {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return Buffer.from(bytes);
};

export const numberField = (id: number, value: number): Field => ({
  id,
  type: I64,
  bytes: varint(value < 0 ? -value * 2 - 1 : value * 2),
});

export const textField = (id: number, value: string): Field => {
  const bytes = Buffer.from(value);
  return { id, type: BINARY, bytes: Buffer.concat([varint(bytes.length), bytes]) };
};

export const structsField = (id: number, elements: readonly Buffer[]): Field => {
  const size = elements.length;
  const header =
    size < 15
      ? Buffer.from([size * 16 + STRUCT])
      : Buffer.concat([Buffer.from([240 + STRUCT]), varint(size)]);
  return { id, type: LIST, bytes: Buffer.concat([header, ...elements]) };
};

/** Ids must ascend. */
export const writeStruct = (fields: readonly Field[]): Buffer => {
  const parts: Buffer[] = [];
  let last = 0;
  for (const { id, type, bytes } of fields) {
    // No struct of a footer skips fifteen ids in a row.
    parts.push(Buffer.from([(id - last) * 16 + type]), bytes);
    last = id;
  }
  return Buffer.concat([...parts, Buffer.from([STOP])]);
};
