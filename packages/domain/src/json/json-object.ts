import { parseExactly } from "./json-text.ts";

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Event, data, items and their items. */
const NAMED_LEVELS = 8;

export function parsedJson(text: string): unknown {
  try {
    return parseExactly(text, NAMED_LEVELS);
  } catch {
    return undefined;
  }
}

/** Python's `json` fails at some 995. */
export const MAX_DEPTH = 200;

export function countKeys(value: object, levels: number = MAX_DEPTH): number | undefined {
  if (levels === 0) return undefined;
  const isList = Array.isArray(value);
  let count = 0;
  // Parsed values inherit no enumerable keys; for-in makes no list.
  for (const key in value) {
    if (!isList) count += 1;
    const item = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof item !== "object" || item === null) continue;
    const inner = countKeys(item, levels - 1);
    if (inner === undefined) return undefined;
    count += inner;
  }
  return count;
}

/** False for numbers such as 1e400. Looks no deeper than `levels`. */
export function holdsDoubles(value: unknown, levels: number = MAX_DEPTH): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null || levels === 0) return true;
  for (const key in value) {
    if (!holdsDoubles((value as Readonly<Record<string, unknown>>)[key], levels - 1)) return false;
  }
  return true;
}
