import {
  dataSubjectRequestSchema,
  LEGACY_FIELDS,
  LEGACY_VERSIONS,
  type LegacyVersion,
  publicConversation,
  publicEndUser,
  publicMessage,
  REQUEST_STATUSES,
  smsTriggerSchema,
} from "@conversation-export/domain";
import { z } from "zod";
import {
  createDocument,
  type ZodOpenApiLinksObject,
  type ZodOpenApiMediaTypeObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from "zod-openapi";
import type { Scope } from "@conversation-export/warehouse";
import { endUserParameters } from "./end-users.ts";
import { legacyConversationParameters, legacyMessageParameters } from "./legacy-parameters.ts";
import { ANY_REQUEST, DUPLICATE, HEADERS, WITH_BODY, WITH_KEY } from "./openapi-answers.ts";
import { conversationParameters, messageParameters } from "./parameters.ts";
import { API_PREFIX } from "./service-address.ts";
import { IDEMPOTENCY_KEY } from "./sms-trigger.ts";

/** An OpenAPI 3.1 document, ready for JSON.stringify. */
export type OpenApi = ReturnType<typeof createDocument>;

const JSON_TYPE = "application/json";
const LINES_TYPE = "application/x-ndjson";

const ABOUT = `Exports the conversations of a customer-support chatbot platform, the messages in them and the end
users behind them, and takes two kinds of requests for the platform.

Every operation but this document needs a key: \`Authorization: Bearer <API_KEY>\`. A key has scopes; each operation
names the one that it needs. Every list comes in pages: follow the link in the body until it is null. HEAD is served
wherever GET is. Responses are compressed with zstd, br or gzip when \`Accept-Encoding\` asks for it.`;

const TAGS = [
  {
    name: "Export",
    description: "Conversations and messages of a window of time, in pages or as one stream of lines",
  },
  { name: "End users", description: "The profiles of end users" },
  { name: "Compliance", description: "Requests to erase the data of a person" },
  { name: "Campaigns", description: "Conversations that begin with an SMS" },
  { name: "Legacy", description: "The export operations of the versions before version 2" },
  { name: "Reference", description: "This document" },
] as const;
type Tag = (typeof TAGS)[number]["name"];

const conversation = publicConversation.meta({ id: "Conversation", description: "A conversation" });
const message = publicMessage.meta({ id: "Message", description: "A message of a conversation" });
const endUser = publicEndUser.meta({ id: "EndUser", description: "The profile of an end user" });

const SECURED = [{ bearer: [] }];

const withKey = (scope: Scope, tag: Tag, description: string) => ({
  tags: [tag],
  security: SECURED,
  description: `${description}\n\nThe key needs the scope \`${scope}\`.`,
});
const rated = { ...HEADERS.requestId, ...HEADERS.rateLimit };

const link = (form: string) =>
  z.string().nullable().describe(`The next page: ${form}; null when there is none`);

const pageOf = (record: z.ZodType) =>
  z.object({
    data: z.array(record),
    meta: z.object({ next_page_uri: link("an absolute address") }),
  });

const LINES_ABOUT = `The whole window, one record a line in the order of the pages, and a last line
\`{"trailer":{"count":…,"watermark":…}}\`. Without the trailer the stream is broken: resume it with the date of the
last whole line as the lower bound.`;

const lines: ZodOpenApiMediaTypeObject = {
  schema: z.string().describe(LINES_ABOUT),
  example:
    '{"_id":"64f1c0ffee64f1c0ffee64f1","date_created":"2026-10-01T00:00:00.000000+00:00"}\n' +
    '{"trailer":{"count":1,"watermark":"2026-10-08T00:00:00.000000Z"}}\n',
};

const exportOperation = (operation: {
  id: string;
  summary: string;
  description: string;
  query: z.ZodObject;
  record: z.ZodType;
  links?: ZodOpenApiLinksObject;
}): ZodOpenApiOperationObject => ({
  operationId: operation.id,
  summary: operation.summary,
  ...withKey(
    "export",
    "Export",
    `${operation.description}

The lower bound is inclusive, the upper one exclusive, so adjacent windows neither lose nor repeat a record. A window may
be of any length. With \`Accept: ${LINES_TYPE}\` the whole window comes as one stream of lines, which counts as one
request; \`page_size\` has no meaning then.`,
  ),
  requestParams: { query: operation.query },
  responses: {
    200: {
      description: "A page, or the whole window as lines",
      headers: z.object({ ...rated, ...HEADERS.watermark, ...HEADERS.link }),
      content: { [JSON_TYPE]: { schema: pageOf(operation.record) }, [LINES_TYPE]: lines },
      ...(operation.links && { links: operation.links }),
    },
    ...WITH_KEY,
  },
});

const legacyPage = (record: z.ZodObject, fields: readonly string[]) => {
  const shape = Object.entries(record.shape).filter(([name]) => fields.includes(name));
  return z.object({
    data: z.array(z.object(Object.fromEntries(shape))),
    message: z.literal("OK"),
    next_page_uri: link("an address relative to this host"),
  });
};

const LEGACY = {
  conversations: { noun: "Conversations", query: legacyConversationParameters, record: publicConversation },
  messages: { noun: "Messages", query: legacyMessageParameters, record: publicMessage },
} as const;

const legacyOperation = (list: keyof typeof LEGACY, version: LegacyVersion): ZodOpenApiOperationObject => {
  const { noun, query, record } = LEGACY[list];
  return {
    operationId: `legacy${noun}${version.replace("v", "V").replace(".", "_")}`,
    summary: `${noun}, ${version}`,
    ...withKey(
      "export",
      "Legacy",
      `${noun} with the fields of ${version}, in pages. Use /v2/export/${list} instead.`,
    ),
    deprecated: true,
    requestParams: { query },
    responses: {
      200: {
        description: "A page",
        headers: z.object({ ...rated, ...HEADERS.watermark, ...HEADERS.retirement }),
        content: { [JSON_TYPE]: { schema: legacyPage(record, LEGACY_FIELDS[list][version]) } },
      },
      ...WITH_KEY,
    },
  };
};

/** Legacy operations are at home beside the prefix of the others, and are served behind it as well. */
const legacyPaths = (rootUrl: string): ZodOpenApiPathsObject =>
  Object.fromEntries(
    LEGACY_VERSIONS.flatMap((version) =>
      (["conversations", "messages"] as const).map((list) => [
        `/data_api/${version}/${list}`,
        { servers: [{ url: rootUrl }], get: legacyOperation(list, version) },
      ]),
    ),
  );

const endUsers: ZodOpenApiOperationObject = {
  operationId: "listEndUsers",
  summary: "End users",
  ...withKey(
    "end_users",
    "End users",
    "The profiles of end users in the order of their ids. The path may end with a slash.",
  ),
  requestParams: { query: endUserParameters },
  responses: {
    200: {
      description: "A page",
      headers: z.object({ ...rated, ...HEADERS.watermark, ...HEADERS.link }),
      content: {
        [JSON_TYPE]: {
          schema: z.object({
            data: z.array(endUser),
            meta: z.object({ next_page_url: link("an absolute address") }),
          }),
        },
      },
    },
    ...WITH_KEY,
  },
};

const PERSON = { email: "jane@example.com", identifiers: [{ type: "chatter_id", value: "64f1c0ffee" }] };

const dataSubjectRequest = dataSubjectRequestSchema.meta({
  id: "DataSubjectRequest",
  description: "Whose data is to be erased: an e-mail address, at least one identifier, or both",
  examples: [{ type: "ERASURE", ...PERSON }],
  override: ({ jsonSchema }) => {
    jsonSchema.anyOf = [
      { required: ["email"], properties: { email: { type: "string" } } },
      { required: ["identifiers"], properties: { identifiers: { type: "array", items: {}, minItems: 1 } } },
    ];
  },
});

const dataSubjectRequestStatus = z
  .object({
    request_id: z.string(),
    type: dataSubjectRequestSchema.shape.type,
    email: z.string().nullable(),
    identifiers: z
      .array(z.object({ type: z.enum(["email", "chatter_id", "end_user_id"]), value: z.string() }))
      .optional()
      .describe("Absent when there are none"),
    status: z.enum(REQUEST_STATUSES).describe("How far the request has come"),
    received_at: z.string().meta({ format: "date-time" }),
    updated_at: z.string().meta({ format: "date-time" }),
  })
  .meta({ id: "DataSubjectRequestStatus", description: "A request and how far it has come" });

const compliancePaths = (version: "v1" | "v2"): ZodOpenApiPathsObject => ({
  [`/${version}/data-subject-request`]: {
    post: {
      operationId: `createDataSubjectRequest${version.toUpperCase()}`,
      summary: `Erase the data of a person, ${version}`,
      ...withKey(
        "compliance",
        "Compliance",
        "Accepts a request for erasure, which is done later. People nobody knows are accepted too. The same request " +
          "again is the same request.",
      ),
      requestBody: { required: true, content: { [JSON_TYPE]: { schema: dataSubjectRequest } } },
      responses: {
        200: {
          description: "Accepted and kept",
          headers: z.object({ ...rated, ...HEADERS.location }),
          content: {
            [JSON_TYPE]: {
              schema: z.object({ email: z.string().nullable().describe("As it was given") }),
              example: { email: PERSON.email },
            },
          },
        },
        ...WITH_BODY,
      },
    },
  },
  [`/${version}/data-subject-request/{id}`]: {
    get: {
      operationId: `getDataSubjectRequest${version.toUpperCase()}`,
      summary: `Status of a request for erasure, ${version}`,
      ...withKey("compliance", "Compliance", "How far a request has come."),
      requestParams: {
        path: z.object({ id: z.string().meta({ description: "The id at the end of `Location`" }) }),
      },
      responses: {
        200: {
          description: "The request",
          headers: z.object(rated),
          content: { [JSON_TYPE]: { schema: dataSubjectRequestStatus } },
        },
        ...WITH_KEY,
      },
    },
  },
});

const smsTrigger: ZodOpenApiOperationObject = {
  operationId: "triggerSms",
  summary: "Start a conversation by SMS",
  ...withKey(
    "campaigns",
    "Campaigns",
    "Asks the platform to send the first message of a campaign to one recipient. The answer comes when the request is " +
      "safe; the platform sends later.",
  ),
  requestParams: {
    header: z.object({
      "Idempotency-Key": z
        .string()
        .regex(IDEMPOTENCY_KEY)
        .optional()
        .meta({
          description: "The same request with the same key within 24 hours is done once",
          examples: ["order-4711-shipped"],
        }),
    }),
  },
  requestBody: {
    required: true,
    content: {
      [JSON_TYPE]: {
        schema: smsTriggerSchema.meta({
          id: "SmsTrigger",
          examples: [
            {
              campaign_key: "order-shipped",
              language: "en-US",
              recipient: { meta_fields: { phone_number: "+15551234567", order: 4711 } },
            },
          ],
        }),
      },
    },
  },
  responses: {
    200: {
      description: "Safe on the event bus",
      headers: z.object(rated),
      content: {
        [JSON_TYPE]: {
          schema: z.object({ id: z.string().describe("Of the event; the same for a repetition") }),
        },
      },
    },
    ...WITH_BODY,
    ...DUPLICATE,
  },
};

const thisDocument: ZodOpenApiOperationObject = {
  operationId: "getOpenApi",
  summary: "This document",
  description: "The OpenAPI document of the interface; it needs no key.",
  tags: ["Reference"],
  security: [],
  responses: {
    200: {
      description: "The document",
      headers: z.object(HEADERS.requestId),
      content: { [JSON_TYPE]: { schema: z.looseObject({ openapi: z.string() }) } },
    },
    ...ANY_REQUEST,
  },
};

const paths = (rootUrl: string): ZodOpenApiPathsObject => ({
  "/v2/export/conversations": {
    get: exportOperation({
      id: "exportConversations",
      summary: "Conversations",
      description:
        "Conversations that were created in a window, or, with the `updated_` parameters, updated in it, in the order of " +
        "that date.",
      query: conversationParameters,
      record: conversation,
      links: {
        messages: {
          operationId: "exportMessages",
          description: "The messages of a conversation",
          parameters: { conversation_id: "$response.body#/data/0/_id" },
        },
        endUser: {
          operationId: "listEndUsers",
          description: "The profile of the chatter, when it is asked for with a limit of 1",
          parameters: { cursor: "$response.body#/data/0/end_user_id" },
        },
      },
    }),
  },
  "/v2/export/messages": {
    get: exportOperation({
      id: "exportMessages",
      summary: "Messages",
      description:
        "Messages that were created in a window, of all conversations or of one, in the order of that date.",
      query: messageParameters,
      record: message,
    }),
  },
  "/v2/end-users": { get: endUsers },
  ...compliancePaths("v1"),
  ...compliancePaths("v2"),
  "/campaigns/sms/trigger": { post: smsTrigger },
  ...legacyPaths(rootUrl),
  "/openapi.json": { get: thisDocument },
});

/**
 * The OpenAPI document of the whole interface, made from the schemas that check requests and from the answers that the
 * service gives.
 * @param deps.publicBaseUrl the address with its /api prefix; without it the document names paths of its own host
 */
export const createOpenApi = (deps: { publicBaseUrl?: string | undefined } = {}): OpenApi => {
  const baseUrl = deps.publicBaseUrl ?? API_PREFIX;
  const rootUrl = baseUrl.endsWith(API_PREFIX) ? baseUrl.slice(0, -API_PREFIX.length) : baseUrl;
  return createDocument(
    {
      openapi: "3.1.1",
      info: {
        title: "Conversation export",
        version: "2.0.0",
        description: ABOUT,
        contact: { name: "The operator of this service" },
      },
      servers: [{ url: baseUrl }],
      tags: [...TAGS],
      paths: paths(rootUrl === "" ? "/" : rootUrl),
      components: {
        securitySchemes: {
          bearer: {
            type: "http",
            scheme: "bearer",
            description: "An API key, `Authorization: Bearer <API_KEY>`",
          },
        },
      },
    },
    {
      override: ({ jsonSchema, zodSchema, io }) => {
        // Left out for what is transformed when it is read; here they are what is sent.
        const examples = z.globalRegistry.get(zodSchema)?.examples;
        if (io === "input" && Array.isArray(examples)) jsonSchema.examples = examples;
        // Fields may be added to what leaves.
        if (io === "output" && jsonSchema.additionalProperties === false)
          delete jsonSchema.additionalProperties;
      },
    },
  );
};
