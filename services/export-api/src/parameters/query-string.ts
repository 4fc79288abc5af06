/** Decoded; a name may repeat. */
export type QueryPairs = readonly (readonly [name: string, value: string])[];

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
};

export const readQuery = (target: string): { pairs: QueryPairs; problems: string[] } => {
  const mark = target.indexOf("?");
  const pairs: [string, string][] = [];
  const problems: string[] = [];
  if (mark === -1) return { pairs, problems };
  for (const part of target.slice(mark + 1).split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const name = decode(equals === -1 ? part : part.slice(0, equals));
    const value = equals === -1 ? "" : decode(part.slice(equals + 1));
    if (name === undefined) problems.push("query: a name is not valid percent-encoded UTF-8");
    else if (value === undefined) problems.push(`${name}: is not valid percent-encoded UTF-8`);
    else pairs.push([name, value]);
  }
  return { pairs, problems };
};

const encode = (text: string): string => encodeURIComponent(text).replaceAll("%3A", ":");

/** Colons stay readable, as RFC 3986 allows. */
export const writeQuery = (pairs: QueryPairs): string =>
  pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
