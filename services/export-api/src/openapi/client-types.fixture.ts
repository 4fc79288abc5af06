import { LIST_NAMES, type ListName } from "@conversation-export/domain";
import { LISTS } from "../lists/lists.ts";

type Schema = {
  readonly format?: string;
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly description?: string;
};

type Parameter = {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
};
type Operation = {
  readonly parameters?: readonly Parameter[];
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
};
export type OpenApi = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};

const CHANGES = "/v2/export/changes/conversations";
const pathsOf = (list: ListName): readonly string[] => [
  `/v2/export/${list}`,
  `/v2/${list.replaceAll("_", "-")}`,
];

const MADE =
  "// Made from the OpenAPI document of the service: see services/export-api/src/openapi/client-types.test.ts.\n\n";

const nameOf = (ref: string): string => ref.slice(ref.lastIndexOf("/") + 1);
const isName = (key: string): boolean => /^[A-Za-z_]\w*$/.test(key);

const member = (key: string, schema: Schema, isRequired: boolean): string => {
  const about =
    schema.description === undefined ? "" : `/** ${schema.description.replaceAll("\n", " ")} */\n`;
  return `${about}readonly ${isName(key) ? key : JSON.stringify(key)}${isRequired ? "" : "?"}: ${typeOf(schema)};\n`;
};

const objectOf = ({ properties = {}, required = [], additionalProperties }: Schema): string => {
  const members = Object.entries(properties).map(([key, one]) => member(key, one, required.includes(key)));
  const isTyped = typeof additionalProperties === "object" && Object.keys(additionalProperties).length > 0;
  const others = `{ readonly [name: string]: ${isTyped ? typeOf(additionalProperties) : "unknown"} }`;
  if (members.length === 0) return others;
  return `{\n${members.join("")}}${isTyped ? ` & ${others}` : ""}`;
};

const typeOf = (schema: Schema): string => {
  if (schema.$ref !== undefined) return nameOf(schema.$ref);
  const alternatives = schema.oneOf ?? (schema.type === undefined ? schema.anyOf : undefined);
  if (alternatives !== undefined) return [...new Set(alternatives.map(typeOf))].join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (Array.isArray(schema.type))
    return schema.type.map((type: string) => typeOf({ ...schema, type })).join(" | ");
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array":
      return `readonly (${typeOf(schema.items ?? {})})[]`;
    case "object":
      return objectOf(schema);
    default:
      return "unknown";
  }
};

const operationOf = (document: OpenApi, path: string): Operation => {
  const operation = document.paths[path]?.["get"];
  if (operation === undefined) throw new Error(`the document has no GET ${path}`);
  return operation;
};

const recordOf = (document: OpenApi, path: string): Schema => {
  const page = operationOf(document, path).responses["200"]?.content?.["application/json"]?.schema;
  const items = page?.properties?.["data"]?.items;
  if (items === undefined) throw new Error(`the document has no records of ${path}`);
  return items;
};

const queryOf = (document: OpenApi, path: string): Schema => {
  const parameters = (operationOf(document, path).parameters ?? []).filter((one) => one.in === "query");
  return {
    type: "object",
    properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
  };
};

const listsOf = (document: OpenApi): readonly { readonly list: ListName; readonly path: string }[] =>
  LIST_NAMES.map((list) => {
    const path = pathsOf(list).find((one) => one in document.paths);
    if (path === undefined) throw new Error(`the document has no path of ${list}`);
    return { list, path };
  });

export const clientTypes = (document: OpenApi): string => {
  const lists = listsOf(document);
  const schemas = {
    ...Object.fromEntries(
      lists.map(({ path }) => {
        const record = recordOf(document, path);
        return [nameOf(record.$ref ?? ""), record];
      }),
    ),
    ...Object.fromEntries(
      lists.map(({ list, path }) => [`${LISTS[list].noun}Query`, queryOf(document, path)]),
    ),
    ChangesQuery: queryOf(document, CHANGES),
    ...document.components.schemas,
  };
  const types = Object.entries(schemas).map(([name, schema]) => `export type ${name} = ${typeOf(schema)};\n`);
  return `${MADE}${types.join("\n")}`;
};

const columnOf = (name: string, schema: Schema): string => {
  const types = (schema.anyOf ?? [schema]).flatMap(({ type = [] }) => type).filter((type) => type !== "null");
  const [type, ...others] = types;
  if (schema.format === "date-time" || name === "record_last_updated") return "instant";
  if (others.length > 0 || type === undefined) return "json";
  if (type === "string") return "text";
  return type === "number" || type === "integer" || type === "boolean" ? type : "json";
};

type Shape = string | readonly [Shape] | { readonly [name: string]: Shape };

const shapeOf = (name: string, schema: Schema): Shape => {
  const one = (schema.anyOf ?? [schema]).find(({ type }) => type !== "null") ?? schema;
  if (one.items !== undefined) return [shapeOf("", one.items)];
  const members = Object.entries(one.properties ?? {});
  if (members.length === 0) return columnOf(name, schema);
  return Object.fromEntries(members.map(([key, of]) => [key, shapeOf(key, of)]));
};

const fieldsOf = (document: OpenApi, list: string, path: string): Readonly<Record<string, Schema>> => {
  const record = recordOf(document, path);
  const { properties } =
    record.$ref === undefined ? record : (document.components.schemas[nameOf(record.$ref)] ?? {});
  if (properties === undefined) throw new Error(`the document has no fields of ${list}`);
  return properties;
};

export const clientFields = (document: OpenApi): string => {
  const lists = listsOf(document).map(
    ({ list, path }) => [list, Object.entries(fieldsOf(document, list, path))] as const,
  );
  const kinds = lists.map(([list, fields]) => [
    list,
    Object.fromEntries(fields.map(([name, one]) => [name, columnOf(name, one)])),
  ]);
  const shapes = lists.map(([list, fields]) => [
    list,
    Object.fromEntries(
      fields
        .map(([name, one]) => [name, shapeOf(name, one)] as const)
        .filter(([, shape]) => typeof shape === "object"),
    ),
  ]);
  return `${MADE}/** The fields of the records of each list, and the kind of their values. */
export const FIELDS = ${JSON.stringify(Object.fromEntries(kinds))} as const;

/** What is in the fields of kind json that have a form. */
export const SHAPES = ${JSON.stringify(Object.fromEntries(shapes))} as const;\n`;
};
