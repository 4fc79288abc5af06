export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const endOfString = (text: string, start: number): number => {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at;
    while (text[before - 1] === "\\") before -= 1;
    if ((at - before) % 2 === 0) return at;
  }
  return text.length;
};

/** The JSON must be well-formed. */
export const partsOf = (text: string): string[] => {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  const end = (at: number): void => {
    const part = text.slice(start, at).trim();
    if (part !== "") parts.push(part);
    start = at + 1;
  };
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at);
    else if (char === "{" || char === "[") {
      depth += 1;
      if (depth === 1) start = at + 1;
    } else if (char === "}" || char === "]") {
      if (depth === 1) end(at);
      depth -= 1;
    } else if (char === "," && depth === 1) end(at);
  }
  return parts;
};

/** As written: numbers keep all digits. */
export const valueTexts = (text: string): Map<string, string> =>
  new Map(
    partsOf(text).map((part) => {
      const end = endOfString(part, 0);
      return [JSON.parse(part.slice(0, end + 1)) as string, part.slice(part.indexOf(":", end) + 1).trim()];
    }),
  );

const HALF = /\\u[dD][89a-fA-F]/;
const ESCAPE =
  /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|.)/gs;
const HALF_LENGTH = 6;

/** DuckDB rejects lone surrogates. */
export const wellFormed = (text: string): string =>
  HALF.test(text)
    ? text.replace(ESCAPE, (escape) => (escape.length === HALF_LENGTH ? "\ufffd" : escape))
    : text;
