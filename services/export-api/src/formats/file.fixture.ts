import { MAGIC, writeFooter } from "./footer.ts";
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

export type Group = { readonly rows: number; readonly columns: readonly string[] };

const STRUCT = 12;
const schemaOf = (name: string): Field => structsField(2, [writeStruct([textField(4, name)])]);

export const fileOf = (groups: readonly Group[], { schema = "schema", madeBy = "a test" } = {}): Buffer => {
  let place = MAGIC.length;
  const written: Buffer[] = [];
  const footers = groups.map(({ rows, columns }) => {
    const start = place;
    const chunks = columns.map((page) => {
      const at = place;
      written.push(Buffer.from(page));
      place += Buffer.byteLength(page);
      const bloomFilter = [numberField(14, 999_999), numberField(15, 12)];
      const pages = writeStruct([
        textField(3, "name"),
        numberField(9, at),
        numberField(11, at),
        ...bloomFilter,
      ]);
      const index = [numberField(4, 999_999), numberField(5, 12)];
      return writeStruct([numberField(2, place), { id: 3, type: STRUCT, bytes: pages }, ...index]);
    });
    const more = [numberField(2, 7), numberField(3, rows), numberField(5, start), numberField(7, 0)];
    return writeStruct([structsField(1, chunks), ...more]);
  });
  const rows = groups.reduce((sum, group) => sum + group.rows, 0);
  const fields = [numberField(1, 2), schemaOf(schema), textField(6, madeBy)];
  const shared = { schema: schemaOf(schema).bytes, fields };
  return Buffer.concat([MAGIC, ...written, writeFooter({ rows, groups: footers, shared }, {})]);
};

const valueOf = (fields: readonly Field[], id: number): Buffer => {
  const field = fields.find((one) => one.id === id);
  if (field === undefined) throw new Error(`no field ${id}`);
  return field.bytes;
};
const textOf = (bytes: Buffer): string =>
  bytes.subarray(bytes.findIndex((byte) => byte < 128) + 1).toString();

export const contentOf = (file: Buffer) => {
  if (!file.subarray(-4).equals(MAGIC)) throw new Error("no whole file");
  const end = file.length - 8;
  const footer = readStruct(file.subarray(end - file.readUInt32LE(end), end));
  const ids: number[] = footer.map(({ id }) => id);
  const facts = readList(valueOf(footer, 5)).map((pair) => {
    const fields = readStruct(pair);
    return [textOf(valueOf(fields, 1)), textOf(valueOf(fields, 2))] as const;
  });
  const groups = readList(valueOf(footer, 4)).map((group) => {
    const fields = readStruct(group);
    const columns = readList(valueOf(fields, 1)).map((column) => {
      const own = readStruct(column);
      const pages = readStruct(valueOf(own, 3));
      const start = readNumber(valueOf(pages, 9));
      const placeOfDictionary = readNumber(valueOf(pages, 11));
      if (placeOfDictionary !== start) throw new Error("the dictionary lies elsewhere");
      const known = [own.map(({ id }) => id), pages.map(({ id }) => id)];
      return { text: file.toString("latin1", start, readNumber(valueOf(own, 2))), known };
    });
    return { rows: readNumber(valueOf(fields, 3)), start: readNumber(valueOf(fields, 5)), columns };
  });
  return { ids, rows: readNumber(valueOf(footer, 3)), facts: Object.fromEntries(facts), groups };
};
