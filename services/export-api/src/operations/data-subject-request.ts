import {
  dataSubjectOf,
  dataSubjectRequestSchema,
  formatTimestamp,
  REQUEST_STATUSES,
} from "@conversation-export/domain";
import { erasureJob, erasureJobId, type JobClient } from "@conversation-export/queue";
import type { DataSubjectRequest, RequestStore } from "@conversation-export/warehouse";
import { z } from "zod";
import { resourceMissing, unprocessable } from "../http/api-error.ts";
import type { Call, Endpoint } from "./endpoint.ts";
import { type Description, header } from "../openapi/description.ts";
import { checkBody, readJsonBody, requireNoQuery, sendJson } from "../http/json-body.ts";

const VERSIONS = ["v1", "v2"] as const;
type Version = (typeof VERSIONS)[number];

const pathOf = (version: Version): string => `/api/${version}/data-subject-request`;

/** The form of the ids that the store makes. */
const REQUEST_ID = /^[0-9a-f]{32}-\d{1,9}$/;

const JSON_TYPE = "application/json";
const PERSON = { email: "jane@example.com", identifiers: [{ type: "chatter_id", value: "64f1c0ffee" }] };

const describedBody = dataSubjectRequestSchema.meta({
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

const statusSchema = z
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

const LOCATION = header("Location", z.string(), "Where the status of the request can be read");

const acceptDescription = (version: Version): Description => ({
  operationId: `createDataSubjectRequest${version.toUpperCase()}`,
  summary: `Erase the data of a person, ${version}`,
  tag: "Compliance",
  text:
    "Accepts a request for erasure, which is done later. Unknown people are accepted too. Sending the same again before " +
    "it has finished leads to the same request.",
  requestBody: { required: true, content: { [JSON_TYPE]: { schema: describedBody } } },
  success: {
    description: "Accepted and kept",
    headers: { Location: LOCATION },
    content: {
      [JSON_TYPE]: {
        schema: z.object({ email: z.string().nullable().describe("As it was given") }),
        example: { email: PERSON.email },
      },
    },
  },
});

const statusDescription = (version: Version): Description => ({
  operationId: `getDataSubjectRequest${version.toUpperCase()}`,
  summary: `Status of a request for erasure, ${version}`,
  tag: "Compliance",
  text: "How far a request has come.",
  requestParams: {
    path: z.object({ id: z.string().meta({ description: "The id at the end of `Location`" }) }),
  },
  success: { description: "The request", content: { [JSON_TYPE]: { schema: statusSchema } } },
});

export type DataSubjectRequestDeps = {
  readonly requests: Pick<RequestStore, "find" | "open" | "setStatus">;
  readonly jobs: Pick<JobClient, "add">;
};

const view = (request: DataSubjectRequest): z.infer<typeof statusSchema> => ({
  request_id: request.requestId,
  type: request.type,
  email: request.subject.email,
  ...(request.subject.identifiers.length > 0 && { identifiers: [...request.subject.identifiers] }),
  status: request.status,
  received_at: formatTimestamp(request.receivedAt * 1000),
  updated_at: formatTimestamp(request.updatedAt * 1000),
});

/**
 * Accepts requests of data subjects and tells their status (section 4.5 of the specification). A request is
 * accepted when its row and its job are acknowledged; the job erases later.
 */
export const createDataSubjectRequests = (deps: DataSubjectRequestDeps): readonly Endpoint[] => {
  const { requests, jobs } = deps;
  const common = { scope: "compliance", limit: "data_subject_request", slot: "body" } as const;

  const accept = async ({ request, reply, client }: Call): Promise<void> => {
    requireNoQuery(request.raw.url ?? "");
    const body = checkBody(dataSubjectRequestSchema, await readJsonBody(request.raw));
    const subject = dataSubjectOf(body);
    if (subject === undefined) throw unprocessable(["body: an email or at least one identifier is required"]);
    const { requestId, status } = await requests.open(client.clientId, subject);
    const id = erasureJobId(requestId);
    await jobs.add(erasureJob, { clientId: client.clientId, requestId }, { id });
    if (status === "received") await requests.setStatus(client.clientId, requestId, "queued");
    void reply.header("location", `${pathOf("v2")}/${requestId}`);
    sendJson(reply, 200, { email: body.email ?? null });
  };

  const show = async ({ request, reply, client }: Call): Promise<void> => {
    requireNoQuery(request.raw.url ?? "");
    const { id = "" } = request.params as { id?: string };
    const found = REQUEST_ID.test(id) ? await requests.find(client.clientId, id) : null;
    if (found === null) throw resourceMissing("The data-subject request does not exist");
    sendJson(reply, 200, view(found));
  };

  return VERSIONS.flatMap((version) => [
    {
      ...common,
      method: "POST",
      paths: [pathOf(version)],
      description: acceptDescription(version),
      serve: accept,
    },
    {
      ...common,
      method: "GET",
      paths: [`${pathOf(version)}/:id`],
      description: statusDescription(version),
      serve: show,
    },
  ]);
};
