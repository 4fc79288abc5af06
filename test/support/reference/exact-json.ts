/** JSON as it was written: numbers as their text, members in their order, repeated names kept. */
export type Exact = null | boolean | string | ExactNumber | readonly Exact[] | ExactObject;
export type ExactNumber = { readonly kind: "number"; readonly text: string };
export type ExactObject = {
  readonly kind: "object";
  readonly members: readonly (readonly [string, Exact])[];
};

export function isList(value: Exact | undefined): value is readonly Exact[] {
  return Array.isArray(value);
}

export function isObject(value: Exact | undefined): value is ExactObject {
  return typeof value === "object" && value !== null && !isList(value) && value.kind === "object";
}

export function isNumber(value: Exact | undefined): value is ExactNumber {
  return typeof value === "object" && value !== null && !isList(value) && value.kind === "number";
}

/** The value of a member; of a repeated name the last, as in `JSON.parse`. undefined when there is none. */
export function member(object: ExactObject, name: string): Exact | undefined {
  return object.members.findLast(([other]) => other === name)?.[1];
}

const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/sy;
const SPACE = /[ \t\r\n]*/y;

/** Reads JSON exactly. Throws a SyntaxError when the text is not JSON (RFC 8259). */
export function parseExact(text: string): Exact {
  // The platform's parser decides what JSON is; below, the text is known to be good.
  JSON.parse(text);
  let at = 0;

  const match = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? "";
    at += found.length;
    return found;
  };
  const isNext = (char: string): boolean => {
    match(SPACE);
    if (text[at] !== char) return false;
    at += 1;
    return true;
  };
  const readString = (): string => {
    match(SPACE);
    return JSON.parse(match(STRING)) as string;
  };
  const readMembers = (): [string, Exact][] => {
    const members: [string, Exact][] = [];
    if (isNext("}")) return members;
    do {
      const name = readString();
      isNext(":");
      members.push([name, readValue()]);
    } while (isNext(","));
    isNext("}");
    return members;
  };
  const readItems = (): Exact[] => {
    const items: Exact[] = [];
    if (isNext("]")) return items;
    do items.push(readValue());
    while (isNext(","));
    isNext("]");
    return items;
  };
  const readValue = (): Exact => {
    if (isNext("{")) return { kind: "object", members: readMembers() };
    if (isNext("[")) return readItems();
    if (text[at] === '"') return readString();
    for (const [word, value] of [
      ["null", null],
      ["true", true],
      ["false", false],
    ] as const) {
      if (!text.startsWith(word, at)) continue;
      at += word.length;
      return value;
    }
    return { kind: "number", text: match(NUMBER) };
  };
  return readValue();
}

/** The one form for comparison: no white space, strings as `JSON.stringify` writes them, numbers as they came. */
export function printExact(value: Exact): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (isList(value)) return `[${value.map(printExact).join(",")}]`;
  if (value.kind === "number") return value.text;
  return `{${value.members.map(([name, item]) => `${JSON.stringify(name)}:${printExact(item)}`).join(",")}}`;
}
