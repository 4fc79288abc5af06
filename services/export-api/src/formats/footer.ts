/** The footers of Parquet files; their fields are those of the format's parquet.thrift. */
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

/** The first and the last bytes of a file. */
export const MAGIC = Buffer.from("PAR1");

const FILE = { version: 1, schema: 2, rows: 3, groups: 4, facts: 5, madeBy: 6, orders: 7 } as const;
const GROUP = { columns: 1, bytes: 2, rows: 3, place: 5, compressedBytes: 6 } as const;
const COLUMN = { place: 2, pages: 3 } as const;
const PAGES = { data: 9, index: 10, dictionary: 11, bloomFilter: 14, bloomFilterBytes: 15 } as const;

/** What a file has in common with others of the same columns. */
type Shared = { readonly schema: Buffer; readonly fields: readonly Field[] };

export type Footer = {
  readonly rows: number;
  /** The row groups, with their places in the joined file. */
  readonly groups: readonly Buffer[];
  readonly shared: Shared;
};

type Change = (field: Field) => Field | null;

/** A struct with its fields changed; null: left out. */
const changed = (bytes: Buffer, change: Change): Buffer =>
  writeStruct(readStruct(bytes).flatMap((field) => change(field) ?? []));

const oneOf = (ids: Readonly<Record<string, number>>, id: number): boolean => Object.values(ids).includes(id);

/** Row groups whose bytes lie `by` further in another file. */
const createMove = (by: number) => {
  const moved = ({ id, bytes }: Field): Field => numberField(id, readNumber(bytes) + by);

  const pages: Change = (field) => {
    // ClickHouse is asked to write no filters. Readers do without one that it writes all the same.
    if (field.id === PAGES.bloomFilter || field.id === PAGES.bloomFilterBytes) return null;
    return oneOf(PAGES, field.id) ? moved(field) : field;
  };
  const column: Change = (field) => {
    if (field.id === COLUMN.place) return moved(field);
    // All others lead to indexes of pages, which hold places themselves.
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

/**
 * Reads the footer of a file whose bytes lie `by` further in a joined one.
 * @throws RangeError when it is none
 */
export const readFooter = (bytes: Buffer, by: number): Footer => {
  // Slices of the bytes would keep all of them.
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

/** The end of a file: its footer, which tells these facts by name, the length of that, and the magic. */
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
