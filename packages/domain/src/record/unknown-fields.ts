import { note } from "./noted-names.ts";
import type { Field } from "../record/record-fields.ts";

type Data = Readonly<Record<string, unknown>>;

export type UnknownFields = (data: Data, names: string[], path?: string) => void;

export function unknownFieldsBeside(fields: readonly Field[]): UnknownFields {
  const known = new Set(fields.map(([name]) => name));
  const nested = fields.flatMap(([name, , inner]) =>
    inner === undefined ? [] : [{ name, find: unknownFieldsBeside(inner) }],
  );
  return (data, names, path = "") => {
    for (const name in data) {
      if (!known.has(name) && !note(names, path + name)) return;
    }
    for (const { name, find } of nested) {
      const value = data[name] as Data | readonly Data[] | null | undefined;
      if (value === null || value === undefined) continue;
      const inner = `${path}${name}.`;
      if (!isList(value)) find(value, names, inner);
      else for (const item of value) find(item, names, inner);
    }
  };
}

function isList(value: Data | readonly Data[]): value is readonly Data[] {
  return Array.isArray(value);
}
