import { readFileSync } from "node:fs";
import { type EventType, processEvent } from "@conversation-export/domain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createListReader, createTestApp } from "../http/app.fixture.ts";
import { PARQUET_TYPE } from "../formats/stream-type.ts";
import { CONVERSATION, END_USER, MESSAGE } from "./examples.ts";

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

const EXAMPLES = new URL("../../../../docs/examples/events/", import.meta.url);

/** The record that the service makes of an event of docs/examples/events. */
const recordOf = (type: EventType, uploaded: string): string => {
  const name = `${type.replace(".exported", "").replace("_", "-")}-structured.txt`;
  const [, text = ""] = readFileSync(new URL(name, EXAMPLES), "utf8").split("\n\n");
  const place = { partition: 0, offset: 0 };
  const outcome = processEvent({ text, headers: {}, position: place }, type);
  if (outcome.kind !== "accepted") throw new Error(outcome.reason);
  const { record } = outcome;
  if (record.afterUpload === null) return record.beforeUpload;
  const whole = `${record.beforeUpload}${uploaded}${record.afterUpload}`;
  if (record.type !== "conversation.exported") return whole;
  const entries = record.handoffs.map(({ entry }) => entry).filter((entry) => entry !== "");
  return `${whole}[${entries.join(",")}]${record.tail}`;
};

describe("the records of the examples", () => {
  it.each([
    ["conversation.exported", CONVERSATION, CONVERSATION.record_last_updated],
    ["message.exported", MESSAGE, MESSAGE.record_last_updated],
    ["end_user.exported", END_USER, ""],
  ] as const)("are what becomes of a %s in docs/examples/events, every field filled", (type, example, uploaded) => {
    expect(JSON.stringify(example)).toBe(JSON.stringify(JSON.parse(recordOf(type, uploaded))));
    expect(JSON.stringify(example)).not.toMatch(/null|\[\]|\{\}/);
  });
});

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
