import type { BusHeaders } from "../message.ts";

type RawHeader = { readonly key: string; readonly value: Buffer | null };

/** Linear: a message can hold ten thousand. */
export const headersOf = (list: readonly RawHeader[]): BusHeaders => {
  const values = new Map<string, (Buffer | null)[]>();
  for (const { key, value } of list) {
    const known = values.get(key);
    if (known === undefined) values.set(key, [value]);
    else known.push(value);
  }
  return Object.fromEntries(Array.from(values, ([name, all]) => [name, all.length === 1 ? all[0] : all]));
};
