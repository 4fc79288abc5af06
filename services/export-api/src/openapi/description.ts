import { z } from "zod";
import type { ZodOpenApiOperationObject, ZodOpenApiResponseObject } from "zod-openapi";
import { LINES_TYPES, PARQUET_TYPE } from "../formats/stream-type.ts";
import type { ErrorName } from "../http/errors.ts";

export const TAGS = [
  {
    name: "Export",
    description:
      "Conversations and messages of a window of time, in pages, as one stream of lines or as one file",
  },
  {
    name: "Changes",
    description: "Records in the order in which they were stored, for readers that keep a copy up to date",
  },
  { name: "End users", description: "The profiles of end users" },
  { name: "Compliance", description: "Requests to erase the data of a person" },
  { name: "Campaigns", description: "Conversations that begin with an SMS" },
  { name: "Legacy", description: "The export operations of the versions before version 2" },
  { name: "Reference", description: "This document" },
] as const;

type Headers = Readonly<Record<string, z.ZodType>>;

/** Headers and errors of every operation are added. */
export type Description = {
  readonly operationId: string;
  readonly summary: string;
  readonly tag: (typeof TAGS)[number]["name"];
  /** Markdown. */
  readonly text: string;
  readonly deprecated?: true;
  readonly requestParams?: NonNullable<ZodOpenApiOperationObject["requestParams"]>;
  readonly requestBody?: NonNullable<ZodOpenApiOperationObject["requestBody"]>;
  readonly success: Omit<ZodOpenApiResponseObject, "headers"> & { readonly headers?: Headers };
  readonly errors?: readonly ErrorName[];
};

export const header = <S extends z.ZodType>(id: string, schema: S, description: string): S =>
  schema.meta({ description, header: { id } });

export const linkSchema = (form: string) =>
  z.string().nullable().describe(`The next page: ${form}; null when there is none`);

export const linesAnswer = (about: string, ...lines: readonly object[]) => {
  const example = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  return Object.fromEntries(
    LINES_TYPES.map((type) => [type, { schema: z.string().describe(about), example }] as const),
  );
};

export const parquetAnswer = (what: string) => ({
  [PARQUET_TYPE]: {
    schema: z.string().meta({
      format: "binary",
      description: `${what}, with a typed column for each field: dates as UTC timestamps, lists and structs where they are fixed, and objects of any form as JSON text. A file without a footer is broken: ask for it again.`,
    }),
  },
});

export const PAGE_HEADERS = {
  "X-Export-Watermark": header(
    "X-Export-Watermark",
    z.string().meta({ format: "date-time" }).optional(),
    "Every event that reached the bus before this instant is readable, dead letters excepted; absent when unknown",
  ),
};

export const NOTICE = {
  "X-Export-Notice": header(
    "X-Export-Notice",
    z.string().optional(),
    "Present when this first page was sent several times in a row and its link was not followed: says what to do",
  ),
};
