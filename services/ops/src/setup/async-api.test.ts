import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { asyncApi } from "./async-api.ts";

const { text } = asyncApi();
const { document, diagnostics } = await new Parser().parse(text);
const page = readFileSync(new URL("../../../../docs/events.md", import.meta.url), "utf8");

/** The examples of the page: the topic, the headers and the value of a message. */
const examples = [...page.matchAll(/^```text\n(topic: [^]*?)\n\n([^]*?)\n```$/gm)].map(
  ([, head = "", value = ""]) => {
    const {
      topic,
      key: _,
      ...headers
    } = Object.fromEntries(head.split("\n").map((line) => line.split(/: (.*)/, 2))) as Record<string, string>;
    return { topic: topic ?? "", headers, payload: JSON.parse(value) as unknown };
  },
);

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

  it("has one message for each example of docs/events.md", () => {
    expect(examples).toHaveLength(6);
    const fitting = examples.map(({ topic, headers, payload }) => {
      const channel = document
        ?.channels()
        .all()
        .find((one) => one.address() === topic);
      return (channel?.messages().all() ?? [])
        .filter((one) => accepts(one.headers()?.json(), headers) && accepts(one.payload()?.json(), payload))
        .map((one) => one.name());
    });
    expect(fitting).toEqual(
      ["conversation", "message", "end_user"].flatMap((kind) => [
        [`${kind}.exported.structured`],
        [`${kind}.exported.binary`],
      ]),
    );
  });
});
