import {
  type DataSubject,
  dataSubjectOf,
  dataSubjectRequestSchema,
  formatTimestamp,
  namesOf,
  REQUEST_STATUSES,
} from "@conversation-export/domain";
import { erasureJob, erasureJobId, type JobClient } from "@conversation-export/queue";
import type { DataSubjectRequest, RequestStore, RequestUsage } from "@conversation-export/warehouse";
import { z } from "zod";
import { quotaExceeded, resourceMissing, unprocessable } from "../http/api-error.ts";
import type { Call, Endpoint } from "./endpoint.ts";
import { type Description, header } from "../openapi/description.ts";
import { REQUEST } from "../openapi/examples.ts";
import { checkBody, readJsonBody, requireNoQuery, sendJson } from "../http/json-body.ts";

const VERSIONS = ["v1", "v2"] as const;
type Version = (typeof VERSIONS)[number];

const pathOf = (version: Version): string => `/api/${version}/data-subject-request`;

const REQUEST_ID = /^[0-9a-f]{32}-\d{1,10}$/;

/** Holds 100 identifiers of 500 characters. */
const MAX_REQUEST_BYTES = 65_536;
/** An erasure takes minutes. */
const RETRY_WHEN_FULL_SECONDS = 300;
const DAY_MS = 86_400_000;

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

const NOT_REACHED = [
  { place: "topics of the event bus, dead letters included", until: "the retention of the topics" },
  { place: "backups of the warehouse", until: "the backups are deleted; a restore erases again" },
  { place: "pages and files that were read before", until: "their holder deletes them" },
] as const;

const receiptSchema = z
  .object({
    verified_at: z.string().meta({ format: "date-time" }).describe("When no row was found any more"),
    deleted_rows: z
      .record(z.string(), z.int().min(0))
      .describe(
        "By table, all versions of records included; a row that several requests reach counts for each",
      ),
    not_reached: z.array(z.object({ place: z.string(), until: z.string() })),
  })
  .meta({ id: "ErasureReceipt", description: "Evidence of an erasure, without any identifier" });

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
    hidden_since: z
      .string()
      .meta({ format: "date-time" })
      .optional()
      .describe("Since when no list gives out what the request is about; its rows are removed later"),
    receipt: receiptSchema.optional().describe("Of a completed request"),
  })
  .meta({ id: "DataSubjectRequestStatus", description: "A request and how far it has come" });

const LOCATION = header("Location", z.string(), "Where the status of the request can be read");

const acceptDescription = (version: Version): Description => ({
  operationId: `createDataSubjectRequest${version.toUpperCase()}`,
  summary: `Erase the data of a person, ${version}`,
  tag: "Compliance",
  text:
    "Accepts a request for erasure of what was created until now, which is done later. Unknown people are accepted too. " +
    "Sending the same again within a second leads to the same request, later to a new one that covers what was created in " +
    "between. A record that names only a profile or a conversation that was erased before is reached when that is exported " +
    "again; with the end user id in the new request the conversations of the profile are reached at once. The body has at " +
    "most 65,536 bytes. A client may have so many open requests, and name so many addresses and ids in a day (UTC): one more " +
    "is a 429 that says which bound it is, how much counts, and when there is room again.",
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
  success: {
    description: "The request",
    content: {
      [JSON_TYPE]: {
        schema: statusSchema,
        example: {
          ...REQUEST,
          ...PERSON,
          hidden_since: REQUEST.updated_at,
          receipt: {
            verified_at: REQUEST.updated_at,
            deleted_rows: { conversations: 2, messages: 31 },
            not_reached: NOT_REACHED,
          },
        },
      },
    },
  },
});

export type DataSubjectRequestDeps = {
  readonly requests: Pick<RequestStore, "find" | "open" | "setStatus">;
  readonly jobs: Pick<JobClient, "add" | "checkServer">;
  readonly caps: RequestCaps;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly onCapped: (cap: "open_data_subject_requests" | "data_subject_identifiers") => void;
};

/** `identifiersPerDay`: in UTC. */
export type RequestCaps = { readonly open: number; readonly identifiersPerDay: number };

/** @throws ApiError 429 beyond the caps */
const checkCaps = (
  subject: DataSubject,
  usage: RequestUsage,
  { caps, now, onCapped }: Pick<DataSubjectRequestDeps, "caps" | "now" | "onCapped">,
): void => {
  if (usage.open >= caps.open) {
    onCapped("open_data_subject_requests");
    throw quotaExceeded(
      `allowed: ${caps.open} open erasure requests; open: ${usage.open}; again: when one of them has finished`,
      RETRY_WHEN_FULL_SECONDS,
    );
  }
  const { length } = namesOf(subject);
  if (usage.namedToday + length <= caps.identifiersPerDay) return;
  onCapped("data_subject_identifiers");
  const at = now();
  const tomorrow = Math.floor(at / DAY_MS + 1) * DAY_MS;
  throw quotaExceeded(
    `allowed: ${caps.identifiersPerDay} addresses and ids per 1 day in erasure requests; today: ${usage.namedToday}; ` +
      `in this request: ${length}; again: ${new Date(tomorrow).toISOString()}`,
    Math.ceil((tomorrow - at) / 1000),
  );
};

const view = (request: DataSubjectRequest): z.infer<typeof statusSchema> => ({
  request_id: request.requestId,
  type: request.type,
  email: request.subject.email,
  ...(request.subject.identifiers.length > 0 && { identifiers: [...request.subject.identifiers] }),
  status: request.status,
  received_at: formatTimestamp(request.receivedAt * 1000),
  updated_at: formatTimestamp(request.updatedAt * 1000),
  ...(request.hiddenAt !== null && { hidden_since: formatTimestamp(request.hiddenAt * 1000) }),
  ...(request.status === "completed" &&
    request.deleted !== null && {
      receipt: {
        verified_at: formatTimestamp(request.updatedAt * 1000),
        deleted_rows: { ...request.deleted },
        not_reached: [...NOT_REACHED],
      },
    }),
});

/** Specification, section 4.5. */
export const createDataSubjectRequests = (deps: DataSubjectRequestDeps): readonly Endpoint[] => {
  const { requests, jobs } = deps;
  const common = { scope: "compliance", slot: "body" } as const;

  const accept = async ({ request, reply, client }: Call): Promise<void> => {
    requireNoQuery(request.raw.url ?? "");
    const body = checkBody(dataSubjectRequestSchema, await readJsonBody(request.raw, MAX_REQUEST_BYTES));
    const subject = dataSubjectOf(body);
    if (subject === undefined) throw unprocessable(["body: an email or at least one identifier is required"]);
    // First, so that repetitions while Redis is away fill no quota.
    await jobs.checkServer();
    const { requestId, status } = await requests.open(client.clientId, subject, (usage) =>
      checkCaps(subject, usage, deps),
    );
    const id = erasureJobId(requestId);
    // Accepted only once row and job are acknowledged.
    await jobs.add(erasureJob, { clientId: client.clientId, requestId }, { id });
    if (status === "received") await requests.setStatus(client.clientId, requestId, "queued");
    void reply.header("location", `${pathOf("v2")}/${requestId}`);
    sendJson(reply, 200, { email: body.email ?? null });
  };

  const show = async ({ request, reply, client }: Call): Promise<void> => {
    requireNoQuery(request.raw.url ?? "");
    const { id = "" } = request.params as { id?: string };
    const found = REQUEST_ID.test(id) ? await requests.find(client.clientId, id) : null;
    if (found === null) throw resourceMissing("The erasure request does not exist");
    sendJson(reply, 200, view(found));
  };

  return VERSIONS.flatMap((version) => [
    {
      ...common,
      limit: "data_subject_request",
      method: "POST",
      paths: [pathOf(version)],
      description: acceptDescription(version),
      serve: accept,
    },
    {
      ...common,
      limit: "data_subject_request_status",
      method: "GET",
      paths: [`${pathOf(version)}/:id`],
      description: statusDescription(version),
      serve: show,
    },
  ]);
};
