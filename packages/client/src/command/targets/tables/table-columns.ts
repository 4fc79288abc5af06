import { FIELDS, SHAPES } from "../../../interface/fields.ts";
import { KINDS, type ListName } from "../../../lists/kinds.ts";
import { valueTexts, wellFormed } from "../../../lists/json-parts.ts";

export type TableFormat = "parquet" | "csv";

type Shape = string | readonly Shape[] | { readonly [name: string]: Shape };

export type Cell = { readonly names: readonly string[]; readonly as: "string" | "text" | "json" };

/** `value`: SQL over cells. */
export type TableColumn = {
  readonly name: string;
  readonly type: string;
  readonly value: string;
  readonly cells: readonly Cell[];
  readonly isText: boolean;
};

const SCALARS: Readonly<Record<string, string>> = {
  text: "VARCHAR",
  number: "DOUBLE",
  integer: "BIGINT",
  boolean: "BOOLEAN",
  instant: "TIMESTAMPTZ",
  json: "VARCHAR",
};

const isList = (shape: Shape): shape is readonly Shape[] => Array.isArray(shape);
const membersOf = (shape: Shape): [string, Shape][] =>
  typeof shape === "object" ? Object.entries(shape) : [];

const typeOf = (shape: Shape): string => {
  if (isList(shape)) return `${typeOf(shape[0] ?? "json")}[]`;
  if (typeof shape === "string") return SCALARS[shape] ?? "VARCHAR";
  return `STRUCT(${membersOf(shape)
    .map(([name, one]) => `"${name}" ${typeOf(one)}`)
    .join(", ")})`;
};

/** For `json_transform`. */
const structureOf = (shape: Shape): unknown => {
  if (isList(shape)) return [structureOf(shape[0] ?? "json")];
  if (typeof shape === "string") return shape === "instant" ? "VARCHAR" : SCALARS[shape];
  return Object.fromEntries(membersOf(shape).map(([name, one]) => [name, structureOf(one)]));
};

export const cellName = ({ names }: Cell): string => `"cell ${names.join(".")}"`;

const nested = (cell: Cell, shape: Shape): string =>
  `TRY_CAST(json_transform(${cellName(cell)}, '${JSON.stringify(structureOf(shape))}') AS ${typeOf(shape)})`;

/** Free objects are cut out, since DuckDB would reformat them. */
const structColumn = (name: string, shape: Shape): TableColumn => {
  const cell: Cell = { names: [name], as: "json" };
  const members = membersOf(shape);
  const free = members.filter(([, one]) => one === "json");
  const others = Object.fromEntries(members.filter(([, one]) => one !== "json"));
  const cutOut = new Map<string, Cell>(free.map(([one]) => [one, { names: [name, one], as: "text" }]));
  const values = members.map(([one]) => {
    const cut = cutOut.get(one);
    return `"${one}" := ${cut === undefined ? `(${nested(cell, others)})."${one}"` : cellName(cut)}`;
  });
  return {
    name,
    type: typeOf(shape),
    value: `struct_pack(${values.join(", ")})`,
    cells: [cell, ...cutOut.values()],
    isText: false,
  };
};

const scalarCell = (name: string, kind: string): Cell => ({
  names: [name],
  as: kind === "text" || kind === "instant" ? "string" : "text",
});

const parquetColumn = (name: string, kind: string, shape: Shape | undefined): TableColumn => {
  const cell = scalarCell(name, kind);
  const column = { name, cells: [cell], isText: false };
  if (shape !== undefined && !isList(shape)) return structColumn(name, shape);
  if (shape !== undefined) {
    const list: Cell = { names: [name], as: "json" };
    return { ...column, cells: [list], type: typeOf(shape), value: nested(list, shape) };
  }
  const type = typeOf(kind);
  if (type === "VARCHAR") return { ...column, type, value: cellName(cell) };
  // 5.0 is an integer too.
  const number = kind === "integer" ? `TRY_CAST(${cellName(cell)} AS DOUBLE)` : cellName(cell);
  return { ...column, type, value: `TRY_CAST(${number} AS ${type})` };
};

const csvColumn = (name: string, kind: string): TableColumn => {
  const cell = scalarCell(name, kind);
  return { name, type: "VARCHAR", value: cellName(cell), cells: [cell], isText: kind === "text" };
};

export const tableColumns = (
  format: TableFormat,
  list: ListName,
  fields: readonly string[] | null,
): readonly TableColumn[] => {
  const kinds: Readonly<Record<string, string>> = FIELDS[list];
  const shapes: Readonly<Record<string, Shape>> = SHAPES[list];
  return Object.entries(kinds)
    .filter(([name]) => name === KINDS[list].id || fields === null || fields.includes(name))
    .map(([name, kind]) =>
      format === "csv" ? csvColumn(name, kind) : parquetColumn(name, kind, shapes[name]),
    );
};

const readAs = (as: Cell["as"], text: string): string => {
  if (as === "json") return wellFormed(text);
  return as === "string" && text.startsWith('"') ? (JSON.parse(text) as string) : text;
};

/** A value of an unexpected type stays JSON. */
export const cellsOf = (line: string, cells: readonly Cell[]): readonly (string | null)[] => {
  const values = valueTexts(line);
  return cells.map(({ names: [name = "", member], as }) => {
    const outer = values.get(name);
    const inner = outer?.startsWith("{") === true ? outer : "{}";
    const text = member === undefined ? outer : valueTexts(inner).get(member);
    return text === undefined || text === "null" ? null : readAs(as, text);
  });
};
