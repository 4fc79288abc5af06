/** Numbers as text, members in order, repeated names kept. */
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

/** The last of a repeated name, as in `JSON.parse`. */
export function member(object: ExactObject, name: string): Exact | undefined {
  return object.members.findLast(([other]) => other === name)?.[1];
}

const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/sy;
const SPACE = /[ \t\r\n]*/y;

/** @throws SyntaxError (RFC 8259) */
export function parseExact(text: string): Exact {
  // The code below relies on correct syntax.
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

/** Canonical: no white space, numbers unchanged. */
export function printExact(value: Exact): string {
  if (typeof value === "string") return printText(value);
  if (value === null || typeof value === "boolean") return JSON.stringify(value);
  if (isList(value)) return `[${value.map(printExact).join(",")}]`;
  if (value.kind === "number") return value.text;
  return `{${value.members.map(([name, item]) => `${printText(name)}:${printExact(item)}`).join(",")}}`;
}

/** Escapes characters that line readers take for line ends. */
const printText = (text: string): string =>
  JSON.stringify(text).replaceAll(
    /[\u0085\u2028\u2029]/g,
    (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** Each name once, at its first place with its last value; U+FFFD for lone surrogates. */
export function readable(value: Exact): Exact {
  if (typeof value === "string") return value.toWellFormed();
  if (isList(value)) return value.map(readable);
  if (!isObject(value)) return value;
  const members = value.members.map(([name, item]) => [name.toWellFormed(), readable(item)] as const);
  return { kind: "object", members: [...new Map(members)] };
}

export function depthOf(value: Exact): number {
  const items = isList(value) ? value : isObject(value) ? value.members.map(([, item]) => item) : undefined;
  return items === undefined ? 0 : 1 + Math.max(0, ...items.map(depthOf));
}
