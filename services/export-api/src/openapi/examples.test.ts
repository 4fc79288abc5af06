import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createListReader, createTestApp } from "../http/app.fixture.ts";
import { PARQUET_TYPE } from "../formats/stream-type.ts";

type Media = { readonly schema: Record<string, unknown>; readonly example?: unknown };
type Operation = {
  readonly operationId: string;
  readonly security: readonly unknown[];
  readonly responses: Readonly<Record<string, { readonly content: Readonly<Record<string, Media>> }>>;
};
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Partial<Record<"get" | "post", Operation>>>>>;
  readonly components: { readonly schemas: object };
};

const { app } = createTestApp(createListReader({}).reader);
const { body } = await app.inject({ url: "/api/openapi.json", headers: { host: "x" } });
const { paths, components } = JSON.parse(body) as Document;
const answers = Object.values(paths)
  .flatMap(({ get, post }) => [get, post])
  .filter((operation) => operation !== undefined)
  .filter(({ security }) => security.length > 0)
  .map(({ operationId, responses }) => [operationId, responses["200"]?.content ?? {}] as const);

describe("the example of an answer", () => {
  it.each(answers)("of %s fits its schema, and lines have a record each", (_, content) => {
    const { "application/json": json, [PARQUET_TYPE]: _file, ...lines } = content;
    const schema = JSON.stringify({ ...json?.schema, $defs: components.schemas });
    const inOnePlace = schema.replaceAll("#/components/schemas/", "#/$defs/");
    expect(json?.example).toBeDefined();
    expect(z.fromJSONSchema(JSON.parse(inOnePlace)).safeParse(json?.example)).toMatchObject({
      success: true,
    });
    for (const { example } of Object.values(lines)) {
      const written = String(example)
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { trailer?: { count: number } });
      expect(written.at(-1)?.trailer?.count).toBe(written.length - 1);
    }
  });
});
