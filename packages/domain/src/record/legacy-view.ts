/** Specification, section 9. */
export const LEGACY_VERSIONS = ["v1", "v1.1", "v1.2"] as const;
export type LegacyVersion = (typeof LEGACY_VERSIONS)[number];

/** Returns the index after the view, which is never longer than the record. */
export type View = (source: Uint8Array, start: number, end: number, target: Uint8Array, at: number) => number;

const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

const endOfString = (source: Uint8Array, start: number, end: number): number => {
  let at = start + 1;
  while (at < end) {
    const byte = source[at];
    if (byte === QUOTE) return at + 1;
    at += byte === BACKSLASH ? 2 : 1;
  }
  return end;
};

const endOfValue = (source: Uint8Array, start: number, end: number): number => {
  let at = start;
  let depth = 0;
  while (at < end) {
    const byte = source[at];
    if (byte === QUOTE) {
      at = endOfString(source, at, end);
      continue;
    }
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth += 1;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      if (depth === 0) return at;
      depth -= 1;
    } else if (byte === COMMA && depth === 0) return at;
    at += 1;
  }
  return end;
};

const isAt = (source: Uint8Array, start: number, name: Uint8Array): boolean => {
  for (let index = 0; index < name.length; index += 1) {
    if (source[start + index] !== name[index]) return false;
  }
  return true;
};

/** Assumes compact UTF-8 JSON with unescaped, unique keys. */
export const createView = (fields: readonly string[]): View => {
  const byLength: Uint8Array[][] = [];
  const encoder = new TextEncoder();
  for (const field of fields) {
    const name = encoder.encode(field);
    (byLength[name.length] ??= []).push(name);
  }

  return (source, start, end, target, at) => {
    let to = at;
    let key = start + 1;
    target[to] = OPEN_OBJECT;
    to += 1;
    while (key < end && source[key] === QUOTE) {
      const keyEnd = endOfString(source, key, end);
      const valueEnd = endOfValue(source, keyEnd + 1, end);
      if (byLength[keyEnd - key - 2]?.some((name) => isAt(source, key + 1, name)) === true) {
        if (to > at + 1) {
          target[to] = COMMA;
          to += 1;
        }
        target.set(source.subarray(key, valueEnd), to);
        to += valueEnd - key;
      }
      key = valueEnd + 1;
    }
    target[to] = CLOSE_OBJECT;
    return to + 1;
  };
};
