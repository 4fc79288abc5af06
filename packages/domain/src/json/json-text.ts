/** Parsing and printing would change long numbers, 1.0 and key order. Assumes valid JSON. */

const QUOTE = 34;
const BACKSLASH = 92;

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
    end = text.indexOf('"', end + 1);
  }
  return text.length;
}

function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

export function countKeyTexts(text: string): number {
  let count = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at)) {
    at = skipSpace(text, endOfString(text, at));
    if (text[at] === ":") count += 1;
  }
  return count;
}

function endOfValue(text: string, start: number): number {
  const first = text[start];
  if (first === '"') return endOfString(text, start);
  let at = start;
  if (first !== "{" && first !== "[") {
    while (at < text.length && !",]} \n\r\t".includes(text[at] ?? ",")) at += 1;
    return at;
  }
  let depth = 0;
  while (at < text.length) {
    const char = text[at];
    if (char === '"') {
      at = endOfString(text, at);
      continue;
    }
    at += 1;
    if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return at;
}

/** Of repeated keys the last counts. */
export function memberTexts(text: string): Map<string, string> {
  const members = new Map<string, string>();
  let at = skipSpace(text, 0);
  if (text[at] !== "{") return members;
  at = skipSpace(text, at + 1);
  while (at < text.length && text[at] === '"') {
    const keyEnd = endOfString(text, at);
    const name = text.slice(at + 1, keyEnd - 1);
    const key = name.includes("\\") ? (JSON.parse(`"${name}"`) as string) : name;
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = endOfValue(text, start);
    members.set(key, text.slice(start, end));
    at = skipSpace(text, end);
    if (text[at] !== ",") break;
    at = skipSpace(text, at + 1);
  }
  return members;
}

export function itemTexts(text: string): string[] {
  const items: string[] = [];
  let at = skipSpace(text, 0);
  if (text[at] !== "[") return items;
  at = skipSpace(text, at + 1);
  while (at < text.length && text[at] !== "]") {
    const end = endOfValue(text, at);
    items.push(text.slice(at, end));
    at = skipSpace(text, end);
    if (text[at] !== ",") break;
    at = skipSpace(text, at + 1);
  }
  return items;
}

function parseByNames(text: string, levels: number): unknown {
  const first = text[skipSpace(text, 0)];
  if (levels === 0 || !text.includes("\\") || (first !== "{" && first !== "[")) return JSON.parse(text);
  if (first === "[") return itemTexts(text).map((item) => parseByNames(item, levels - 1));
  return Object.fromEntries(
    [...memberTexts(text)].map(([name, value]) => [name, parseByNames(value, levels - 1)]),
  );
}

/**
 * V8 may read an escaped name as another one that it parsed before; names below `levels` stay so.
 * @throws SyntaxError
 */
export function parseExactly(text: string, levels: number): unknown {
  // Only this one finds what is no JSON.
  const value: unknown = JSON.parse(text);
  return text.includes("\\") ? parseByNames(text, levels) : value;
}

/** Paths, each once; at most `most`. */
export function repeatedKeys(text: string, most = 20): string[][] {
  const found = new Map<string, string[]>();
  const open: { readonly keys: Set<string> | null; place: string }[] = [];
  for (let at = 0; at < text.length && found.size < most; ) {
    const char = text[at];
    const inner = open.at(-1);
    if (char === '"') {
      const end = endOfString(text, at);
      if (inner?.keys && text[skipSpace(text, end)] === ":") {
        inner.place = JSON.parse(text.slice(at, end)) as string;
        if (inner.keys.has(inner.place)) {
          const path = open.map(({ place }) => place);
          found.set(JSON.stringify(path), path);
        }
        inner.keys.add(inner.place);
      }
      at = end;
      continue;
    }
    if (char === "{") open.push({ keys: new Set(), place: "" });
    else if (char === "[") open.push({ keys: null, place: "0" });
    else if (char === "}" || char === "]") open.pop();
    else if (char === "," && inner?.keys === null) inner.place = String(Number(inner.place) + 1);
    at += 1;
  }
  return [...found.values()];
}

/** First place, last value. */
export function withoutRepeatedKeys(text: string): string {
  const first = text[skipSpace(text, 0)];
  if (first === "[") return `[${itemTexts(text).map(withoutRepeatedKeys).join(",")}]`;
  if (first !== "{") return text;
  const members = [...memberTexts(text)].map(
    ([key, value]) => `${JSON.stringify(key)}:${withoutRepeatedKeys(value)}`,
  );
  return `{${members.join(",")}}`;
}

// Valid in strings, but httpx, Node's readline and Python's splitlines end a line there.
const LINE_END = /[\u0085\u2028\u2029]/g;
const escapeOf = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

export const escapeLineEnds = (text: string): string => text.replace(LINE_END, escapeOf);

/** No white space; strings as `JSON.stringify` prints them, Unicode's line ends escaped. */
export function compact(text: string): string {
  let out = "";
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      const literal = text.slice(at, end);
      out +=
        literal.includes("\\") || !literal.isWellFormed() ? JSON.stringify(JSON.parse(literal)) : literal;
      at = end;
    } else if (isSpace(code)) {
      at += 1;
    } else {
      const start = at;
      at += 1;
      while (at < text.length) {
        const next = text.charCodeAt(at);
        if (next === QUOTE || isSpace(next)) break;
        at += 1;
      }
      out += text.slice(start, at);
    }
  }
  return escapeLineEnds(out);
}

/** Up to 32 bits: `1` for `1.0`. */
export const integerText = (text: string): string => String(Number(text));

const MAYBE_HALF = /\\u[dD][89a-fA-F]/;
// Consumes every escape whole: another's backslash must start none.
const ESCAPE = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|.)/g;
const HALF_LENGTH = "\\ud800".length;

/** U+FFFD for half surrogate pairs, which many parsers reject. */
export const replaceHalfPairs = (text: string): string =>
  text.includes("\\u") && MAYBE_HALF.test(text)
    ? text.replace(ESCAPE, (escape) => (escape.length === HALF_LENGTH ? "\ufffd" : escape))
    : text;
