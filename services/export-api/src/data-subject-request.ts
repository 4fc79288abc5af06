import {
  dataSubjectOf,
  dataSubjectRequestSchema,
  formatTimestamp,
  type SubjectIdentifier,
} from "@conversation-export/domain";
import type { ErasureQueue } from "@conversation-export/queue";
import type { DataSubjectRequest, RequestStore } from "@conversation-export/warehouse";
import { resourceMissing, unprocessable } from "./api-error.ts";
import type { Call, Endpoint } from "./endpoint.ts";
import { checkBody, readJsonBody, requireNoQuery } from "./json-body.ts";
import { sendJson } from "./send-json.ts";

const PATHS = ["/api/v1/data-subject-request", "/api/v2/data-subject-request"] as const;
/** The shape of an id as the store makes it. */
const REQUEST_ID = /^[0-9a-f]{32}-\d{1,9}$/;

export type DataSubjectRequestDeps = {
  readonly requests: Pick<RequestStore, "find" | "open" | "setStatus">;
  readonly erasures: Pick<ErasureQueue, "add">;
};

/** The status of a request as it leaves. */
export type DataSubjectRequestView = {
  readonly request_id: string;
  readonly type: string;
  readonly email: string | null;
  readonly identifiers?: readonly SubjectIdentifier[];
  readonly status: string;
  readonly received_at: string;
  readonly updated_at: string;
};

const view = (request: DataSubjectRequest): DataSubjectRequestView => ({
  request_id: request.requestId,
  type: request.type,
  email: request.subject.email,
  ...(request.subject.identifiers.length > 0 && { identifiers: request.subject.identifiers }),
  status: request.status,
  received_at: formatTimestamp(request.receivedAt * 1000),
  updated_at: formatTimestamp(request.updatedAt * 1000),
});

/**
 * Taking in requests of data subjects, and their status (section 4.5 of the specification). A request is accepted when
 * its row and its entry in the queue are acknowledged; the erasure itself is done elsewhere.
 */
export const createDataSubjectRequests = (deps: DataSubjectRequestDeps): readonly Endpoint[] => {
  const { requests, erasures } = deps;
  const common = { scope: "compliance", limit: "data_subject_request", slot: "body" } as const;

  const accept = async ({ request, reply, client }: Call): Promise<void> => {
    requireNoQuery(request.raw.url ?? "");
    const body = checkBody(dataSubjectRequestSchema, await readJsonBody(request.raw));
    const subject = dataSubjectOf(body);
    if (subject === undefined) throw unprocessable(["body: an email or at least one identifier is required"]);
    const { requestId, status } = await requests.open(client.clientId, subject);
    await erasures.add({ clientId: client.clientId, requestId });
    if (status === "received") await requests.setStatus(client.clientId, requestId, "queued");
    void reply.header("location", `${PATHS[1]}/${requestId}`);
    sendJson(reply, 200, { email: body.email ?? null });
  };

  const show = async ({ request, reply, client }: Call): Promise<void> => {
    requireNoQuery(request.raw.url ?? "");
    const { id = "" } = request.params as { id?: string };
    const found = REQUEST_ID.test(id) ? await requests.find(client.clientId, id) : null;
    if (found === null) throw resourceMissing("The data-subject request does not exist");
    sendJson(reply, 200, view(found));
  };

  return [
    { ...common, name: "data_subject_request", method: "POST", paths: PATHS, serve: accept },
    {
      ...common,
      name: "data_subject_request_status",
      method: "GET",
      paths: PATHS.map((path) => `${path}/:id`),
      serve: show,
    },
  ];
};
