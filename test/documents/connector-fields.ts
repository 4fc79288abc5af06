import { type Column, columnsOf, KIND_NAMES, RECORD_KINDS } from "@conversation-export/domain";

const LISTS = KIND_NAMES.map((kind) => {
  const { list, form, public: schema } = RECORD_KINDS[kind];
  return { list, id: form.id.name, columns: columnsOf(schema) };
});

const baseOf = ({ type }: Column): string =>
  typeof type === "string" ? type : "list" in type ? "list" : "object";

const between = (text: string, start: string, end: string, made: string): string => {
  const from = text.indexOf(start);
  const to = text.indexOf(end, from);
  if (from === -1 || to === -1) throw new Error(`no part from ${start} to ${end}`);
  return text.slice(0, from) + made + text.slice(to);
};

export const airbyteManifest = (before: string): string => {
  const streams = LISTS.map(({ list, id, columns }) => {
    const fields = columns
      .filter(({ name }) => name !== id)
      .map((column) => `          ${column.name}: *${baseOf(column).replace("json", "object")}\n`);
    return `  - $ref: "#/definitions/stream"
    name: ${list}
    $parameters: { list: ${list} }
    primary_key: [${id}]
    schema_loader:
      type: InlineSchemaLoader
      schema:
        type: object
        $schema: http://json-schema.org/draft-07/schema#
        additionalProperties: true
        properties:
          ${id}: *id
          _deleted: *flag
          _deleted_at: *instant
          _stored_since: *instant
${fields.join("")}`;
  });
  return between(before, "streams:\n", "\nspec:\n", `streams:\n${streams.join("\n")}`);
};

const DLT_TYPES: Readonly<Record<string, string>> = {
  text: "text",
  number: "double",
  integer: "bigint",
  flag: "bool",
  instant: "timestamp",
  json: "json",
  list: "json",
  object: "json",
};

const wrapped = (words: readonly string[]): string => {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length > 105) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.length === 1 ? `"${lines.join("")}"` : `"""${lines.join("\n            ")}"""`;
};

export const dltSource = (before: string): string => {
  const ids = LISTS.map(({ list, id }) => `"${list}": "${id}"`);
  const lists = LISTS.map(({ list, id, columns }) => {
    const types = [...new Set(Object.values(DLT_TYPES))].flatMap((type) => {
      const names = columns.filter((one) => one.name !== id && DLT_TYPES[baseOf(one)] === type);
      return names.length === 0 ? [] : [`        "${type}": ${wrapped(names.map(({ name }) => name))},\n`];
    });
    return `    "${list}": {\n${types.join("")}    },\n`;
  });
  const made = `IDS = {${ids.join(", ")}}

# Named so that a column does not depend on the first values that it gets; other fields are found by dlt.
COLUMNS = {
${lists.join("")}}
`;
  return between(before, "IDS = {", "\n\nclass CursorExpired", made);
};
