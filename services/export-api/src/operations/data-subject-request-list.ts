import { formatTimestamp, REQUEST_STATUSES } from "@conversation-export/domain";
import type { RequestPlace, RequestStore, RequestSummary } from "@conversation-export/warehouse";
import { z } from "zod";
import { badRequest } from "../http/api-error.ts";
import { sendJson } from "../http/json-body.ts";
import type { AddressOf } from "../http/service-address.ts";
import { type Description, header, linkSchema } from "../openapi/description.ts";
import { DEADLINE, REQUEST } from "../openapi/examples.ts";
import { createCursors, type CursorSecrets } from "../envelopes/cursor-signer.ts";
import { CURSOR, DEFAULT_LIMIT, limitOf, readParameters } from "../parameters/parameters.ts";
import { writeQuery } from "../parameters/query-string.ts";
import type { Endpoint } from "./endpoint.ts";

const VERSIONS = ["v1", "v2"] as const;

const parameters = z.object({ limit: limitOf("requests"), cursor: CURSOR });

const dateTime = z.string().meta({ format: "date-time" });
const entry = z
  .object({
    request_id: z.string(),
    type: z.literal("ERASURE"),
    status: z.enum(REQUEST_STATUSES),
    received_at: dateTime,
    updated_at: dateTime,
    deadline: dateTime.describe("When the request is overdue unless it is finished"),
  })
  .meta({ id: "DataSubjectRequestEntry", description: "A request without the person" });

const descriptionOf = (version: string): Description => ({
  operationId: `listDataSubjectRequests${version.toUpperCase()}`,
  summary: `Requests for erasure, ${version}`,
  tag: "Compliance",
  text: "The client's own requests, finished ones included, the newest first. They name nobody.",
  requestParams: { query: parameters },
  success: {
    description: "A page",
    headers: {
      Link: header(
        "Link",
        z.string().optional(),
        'The next page as `rel="next"`, the same as in the body; absent on the last page',
      ),
    },
    content: {
      "application/json": {
        schema: z.object({
          data: z.array(entry),
          meta: z.object({ next_page_url: linkSchema("an absolute address") }),
        }),
        example: { data: [{ ...REQUEST, deadline: DEADLINE }], meta: { next_page_url: null } },
      },
    },
  },
});

const CURSORS = {
  encode: ({ receivedAt, requestId }: RequestPlace): string => `${receivedAt}:${requestId}`,
  decode: (content: string): RequestPlace | undefined => {
    const [, ms, requestId] = /^(\d{1,15}):([0-9a-f]{32}-\d{1,10})$/.exec(content) ?? [];
    return ms === undefined || requestId === undefined ? undefined : { receivedAt: Number(ms), requestId };
  },
  signed: (content: string, clientId: string): string =>
    JSON.stringify([content, clientId, "data_subject_requests"]),
};

export type DataSubjectRequestListDeps = CursorSecrets & {
  readonly requests: Pick<RequestStore, "list">;
  readonly deadlineMs: number;
  readonly addressOf: AddressOf;
};

export const createDataSubjectRequestList = (deps: DataSubjectRequestListDeps): readonly Endpoint[] => {
  const { requests, deadlineMs, addressOf } = deps;
  const cursors = createCursors(deps, CURSORS);

  const view = (request: RequestSummary): z.infer<typeof entry> => ({
    request_id: request.requestId,
    type: request.type,
    status: request.status,
    received_at: formatTimestamp(request.receivedAt * 1000),
    updated_at: formatTimestamp(request.updatedAt * 1000),
    deadline: formatTimestamp((request.receivedAt + deadlineMs) * 1000),
  });

  return VERSIONS.map((version) => ({
    method: "GET",
    paths: [`/api/${version}/data-subject-request`],
    scope: "compliance",
    limit: "data_subject_request_status",
    slot: "body",
    description: descriptionOf(version),
    serve: async ({ request, reply, client }) => {
      const { values, problems } = readParameters(parameters, request.raw.url ?? "");
      if (problems.length > 0) throw badRequest(problems);
      const { limit = DEFAULT_LIMIT, cursor } = values;
      const { clientId } = client;
      const after = cursor === undefined ? null : cursors.read(cursor, clientId);
      const found = await requests.list(clientId, after, limit + 1);
      const page = found.slice(0, limit);
      const last = page.at(-1);
      let link: string | null = null;
      if (found.length > limit && last !== undefined) {
        const query = writeQuery([
          ["cursor", cursors.write(last, clientId)],
          ["limit", String(limit)],
        ]);
        link = `${addressOf(request)}/${version}/data-subject-request?${query}`;
        void reply.header("link", `<${link}>; rel="next"`);
      }
      sendJson(reply, 200, { data: page.map(view), meta: { next_page_url: link } });
    },
  }));
};
