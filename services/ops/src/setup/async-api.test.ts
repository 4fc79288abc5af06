import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Parser } from "@asyncapi/parser";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { asyncApi } from "./async-api.ts";

const { text } = asyncApi();
const { document, diagnostics } = await new Parser().parse(text);
const DOCS = join(import.meta.dirname, "../../../../docs");
const page = readFileSync(join(DOCS, "events.md"), "utf8");

const examples = globSync("*.txt", { cwd: join(DOCS, "examples/events") })
  .sort()
  .map((name) => {
    const [head = "", value = ""] = readFileSync(join(DOCS, "examples/events", name), "utf8").split("\n\n");
    const lines = head.split("\n").map((line) => line.split(/: (.*)/, 2));
    const { topic = "", key: _, ...headers } = Object.fromEntries(lines) as Record<string, string>;
    return { topic, headers, payload: JSON.parse(value) as unknown };
  });

const ajv = new Ajv({ strict: false });
const accepts = (schema: unknown, value: unknown): boolean => ajv.compile(schema as object)(value);

describe("the AsyncAPI document", () => {
  it("is taken by AsyncAPI's own parser without a remark, but that 3.0 is not the newest", () => {
    expect(diagnostics.map(({ code }) => code)).toEqual(["asyncapi-latest-version"]);
    expect(document?.version()).toBe("3.0.0");
  });

  it("has the topics of the page, each read or written by one operation", () => {
    const channels = document?.channels().all() ?? [];
    const named = [...page.matchAll(/^\| `([\w-]+)` \| `TOPIC_\w+` \|/gm)].map(([, topic]) => topic);
    expect(channels.map((channel) => channel.address())).toEqual([...named, "sms-triggers"]);
    const actions = channels.map((channel) =>
      channel
        .operations()
        .all()
        .map((one) => one.action()),
    );
    expect(actions).toEqual([["receive"], ["receive"], ["receive"], ["send"]]);
  });

  it("has one message for each of docs/examples/events", () => {
    const fitting = examples.flatMap(({ topic, headers, payload }) => {
      const channel = document
        ?.channels()
        .all()
        .find((one) => one.address() === topic);
      return (channel?.messages().all() ?? [])
        .filter((one) => accepts(one.headers()?.json(), headers) && accepts(one.payload()?.json(), payload))
        .map((one) => one.name());
    });
    const messages = document?.messages().all() ?? [];
    expect(fitting).toHaveLength(examples.length);
    expect(new Set(fitting)).toEqual(new Set(messages.map((one) => one.name())));
  });
});
