/** Ids are those of parquet.thrift. */
import {
  type Field,
  numberField,
  readList,
  readNumber,
  readStruct,
  structsField,
  textField,
  writeStruct,
} from "./thrift.ts";

export const MAGIC = Buffer.from("PAR1");

const FILE = { version: 1, schema: 2, rows: 3, groups: 4, facts: 5, madeBy: 6, orders: 7 } as const;
const GROUP = { columns: 1, bytes: 2, rows: 3, place: 5, compressedBytes: 6 } as const;
const COLUMN = { place: 2, pages: 3 } as const;
const PAGES = { data: 9, index: 10, dictionary: 11, bloomFilter: 14, bloomFilterBytes: 15 } as const;

type Shared = { readonly schema: Buffer; readonly fields: readonly Field[] };

export type Footer = {
  readonly rows: number;
  readonly groups: readonly Buffer[];
  readonly shared: Shared;
};

type Change = (field: Field) => Field | null;

/** null: left out. */
const changed = (bytes: Buffer, change: Change): Buffer =>
  writeStruct(readStruct(bytes).flatMap((field) => change(field) ?? []));

const oneOf = (ids: Readonly<Record<string, number>>, id: number): boolean => Object.values(ids).includes(id);

const createMove = (by: number) => {
  const moved = ({ id, bytes }: Field): Field => numberField(id, readNumber(bytes) + by);

  const pages: Change = (field) => {
    // ClickHouse is asked to write none; readers do without.
    if (field.id === PAGES.bloomFilter || field.id === PAGES.bloomFilterBytes) return null;
    return oneOf(PAGES, field.id) ? moved(field) : field;
  };
  const column: Change = (field) => {
    if (field.id === COLUMN.place) return moved(field);
    // The others lead to page indexes, which hold places themselves.
    return field.id === COLUMN.pages ? { ...field, bytes: changed(field.bytes, pages) } : null;
  };
  const group: Change = (field) => {
    if (field.id === GROUP.place) return moved(field);
    if (field.id !== GROUP.columns) return oneOf(GROUP, field.id) ? field : null;
    return structsField(
      field.id,
      readList(field.bytes).map((one) => changed(one, column)),
    );
  };
  return (bytes: Buffer): Buffer => changed(bytes, group);
};

/** `by`: where the file begins in the joined one. @throws RangeError */
export const readFooter = (bytes: Buffer, by: number): Footer => {
  // Slices would keep all bytes in memory.
  const fields = readStruct(bytes).map((field) => ({ ...field, bytes: Buffer.from(field.bytes) }));
  const valueOf = (id: number): Buffer => {
    const field = fields.find((one) => one.id === id);
    if (field === undefined) throw new RangeError(`no field ${id}`);
    return field.bytes;
  };
  const own: readonly number[] = [FILE.rows, FILE.groups, FILE.facts];
  return {
    rows: readNumber(valueOf(FILE.rows)),
    groups: readList(valueOf(FILE.groups)).map(createMove(by)),
    shared: { schema: valueOf(FILE.schema), fields: fields.filter(({ id }) => !own.includes(id)) },
  };
};

export const writeFooter = (
  { rows, groups, shared }: Footer,
  facts: Readonly<Record<string, string>>,
): Buffer => {
  const pairs = Object.entries(facts).map(([name, value]) =>
    writeStruct([textField(1, name), textField(2, value)]),
  );
  const own = [
    numberField(FILE.rows, rows),
    structsField(FILE.groups, groups),
    structsField(FILE.facts, pairs),
  ];
  const footer = writeStruct([...shared.fields, ...own].toSorted((a, b) => a.id - b.id));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  return Buffer.concat([footer, length, MAGIC]);
};
