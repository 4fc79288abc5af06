/** Text preserves number forms, key order and escapes. */
export type JsonText = string;
export type Member = readonly [name: string, text: JsonText];

export function json(value: unknown): JsonText {
  return JSON.stringify(value);
}

const quotedNames = new Map<string, JsonText>();

function quoteName(name: string): JsonText {
  let quoted = quotedNames.get(name);
  if (quoted === undefined) quotedNames.set(name, (quoted = JSON.stringify(name)));
  return quoted;
}

export function object(members: readonly Member[], spaced = false): JsonText {
  const [open, colon, comma, close] = spaced ? ["{\r\n\t", " : ", " ,\n  ", "\n}"] : ["{", ":", ",", "}"];
  let out = open;
  let first = true;
  for (const [name, text] of members) {
    out += `${first ? "" : comma}${quoteName(name)}${colon}${text}`;
    first = false;
  }
  return out + close;
}

export function array(items: readonly JsonText[]): JsonText {
  return `[${items.join(",")}]`;
}
