import { envelopeSchema, LIST_NAMES, RECORD_KINDS, SMS_TRIGGER_TYPE } from "@conversation-export/domain";
import { readSettings, shared } from "@conversation-export/runtime";
import { fileOf, type SchemaFile, schemasByType } from "./event-schemas.ts";

const ABOUT = `What this service reads from Kafka, and the one topic that it writes for the platform. Each message is a
CloudEvent 1.0 with one whole record. The topics have the names that they have by default. Which export wins, what is
refused and where rejected events go: docs/events.md.`;

const STRUCTURED = "application/cloudevents+json";
const BINARY = "application/json";
const BINDINGS = { bindingVersion: "0.5.0" } as const;

type Schema = Readonly<Record<string, unknown>>;

const refTo = (...path: readonly string[]) => ({ $ref: `#/${path.join("/")}` });
const schemaOf = (type: string) => refTo("components", "schemas", type);

const keyOf = (about: string) => ({
  bindings: { kafka: { key: { type: "string", description: about }, ...BINDINGS } },
});
const RECORD_KEY = keyOf("`clientid:record`; all exports of one record have the same");
const SMS_KEY = keyOf("`clientid:phone_number`");

const structured = (type: string, key: object) => ({
  name: `${type}.structured`,
  title: `${type}, structured`,
  summary: "The value is one object with the attributes and `data`",
  contentType: STRUCTURED,
  headers: {
    type: "object",
    properties: { "content-type": { type: "string", pattern: "^application/cloudevents\\+json(;.*)?$" } },
  },
  payload: schemaOf(type),
  ...key,
});

/** The content type replaces `datacontenttype`. */
const attributeHeaders = (type: string): Schema => {
  const names = Object.entries(envelopeSchema.shape).filter(([name]) => name !== "datacontenttype");
  const header = (name: string, about: string | undefined): Schema => ({
    type: "string",
    minLength: 1,
    ...(name === "specversion" && { const: "1.0" }),
    ...(name === "type" && { const: type }),
    ...(about !== undefined && { description: about }),
  });
  const required = names.filter(([, one]) => !one.safeParse(undefined).success);
  return {
    type: "object",
    required: ["content-type", ...required.map(([name]) => `ce_${name}`)],
    properties: {
      "content-type": { type: "string", pattern: "^application/json(;.*)?$" },
      ...Object.fromEntries(names.map(([name, one]) => [`ce_${name}`, header(name, one.description)])),
    },
  };
};

const binary = (type: string) => ({
  name: `${type}.binary`,
  title: `${type}, binary`,
  summary: "The attributes are headers, the value is `data`",
  contentType: BINARY,
  headers: attributeHeaders(type),
  payload: refTo("components", "schemas", type, "properties", "data"),
  ...RECORD_KEY,
});

const channelOf = (topic: string, about: string, messages: readonly string[]) => ({
  address: topic,
  description: about,
  messages: Object.fromEntries(messages.map((name) => [name, refTo("components", "messages", name)])),
  bindings: { kafka: { topic, topicConfiguration: { "cleanup.policy": ["delete"] }, ...BINDINGS } },
});

export const asyncApi = (): SchemaFile => {
  const { topics, smsTopic } = readSettings(
    { topics: shared.eventTopicsOf(LIST_NAMES), smsTopic: shared.smsTopic },
    {},
  );
  const kinds = Object.values(RECORD_KINDS);
  const sms = structured(SMS_TRIGGER_TYPE, SMS_KEY);
  const messages = [...kinds.flatMap(({ type }) => [structured(type, RECORD_KEY), binary(type)]), sms];
  const records = kinds.map(({ type, list }) => ({
    topic: topics[list],
    about: `Exports of ${list.replace("_", " ")}`,
    names: [`${type}.structured`, `${type}.binary`],
  }));
  return fileOf("asyncapi.json", {
    asyncapi: "3.0.0",
    id: "urn:conversation-export:events",
    info: {
      title: "Conversation export: events",
      version: "1.0.0",
      description: ABOUT,
      contact: { name: "The operator of this service" },
      license: { name: "Apache-2.0" },
      tags: [{ name: "Kafka" }, { name: "CloudEvents" }],
    },
    defaultContentType: STRUCTURED,
    channels: {
      ...Object.fromEntries(
        records.map(({ topic, about, names }) => [topic, channelOf(topic, about, names)]),
      ),
      [smsTopic]: channelOf(smsTopic, "Requests to send an SMS", [sms.name]),
    },
    operations: {
      ...Object.fromEntries(
        records.map(({ topic, about }) => [
          `read-${topic}`,
          { action: "receive", channel: refTo("channels", topic), summary: about },
        ]),
      ),
      [`write-${smsTopic}`]: {
        action: "send",
        channel: refTo("channels", smsTopic),
        summary: "One event for each accepted request",
      },
    },
    components: {
      messages: Object.fromEntries(messages.map((message) => [message.name, message])),
      schemas: Object.fromEntries(
        schemasByType("draft-7").map(([type, schema]) => [
          type,
          { title: type, ...schema, $schema: undefined },
        ]),
      ),
    },
  });
};
