import type { Reader } from "@conversation-export/warehouse";
import { z } from "zod";
import { badRequest } from "../http/api-error.ts";
import { type Description, linkSchema, PAGE_HEADERS, parquetAnswer } from "../openapi/description.ts";
import { DEFAULT_LIMIT, limitOf, readParameters } from "../parameters/parameters.ts";
import { writeQuery } from "../parameters/query-string.ts";
import type { ListAnswers } from "../formats/list-answers.ts";
import { JSON_TYPE, PARQUET_TYPE } from "../formats/stream-type.ts";
import { API_PREFIX, type AddressOf } from "../http/service-address.ts";
import { LISTS } from "../lists/lists.ts";
import type { ReadWatermark } from "../lists/watermark.ts";
import type { Envelope } from "./list-endpoint.ts";

const PATH = "/v2/end-users/";

/** Specification, section 4.4. An empty value means absent. */
const parameters = z.object({
  limit: limitOf("records"),
  // Not nullable: an id may be the text `null`.
  cursor: z
    .string()
    .optional()
    .meta({
      description: "The id at which the page starts, that one included; the link to the next page carries it",
      examples: ["64f1c0ffee64f1c0ffee64f1"],
    }),
  external_id: z
    .string()
    .optional()
    .meta({
      description: "Only the people whom another system knows by this id, one of `system_properties`",
      examples: ["crm-4711"],
    }),
});

const { list, record, example } = LISTS.end_users;

const description: Description = {
  operationId: "listEndUsers",
  summary: "End users",
  tag: "End users",
  text:
    "The profiles of end users in the order of their ids. The path may end with a slash. With " +
    `\`Accept: ${PARQUET_TYPE}\` all of them, from the cursor on, come as one file; \`limit\` has no meaning then.`,
  requestParams: { query: parameters },
  success: {
    description: "A page, or all as Parquet",
    headers: PAGE_HEADERS,
    content: {
      [JSON_TYPE]: {
        schema: z.object({
          data: z.array(record.meta({ id: "EndUser", description: "The profile of an end user" })),
          meta: z.object({ next_page_url: linkSchema("an absolute address") }),
        }),
        example: { data: [example], meta: { next_page_url: null } },
      },
      ...parquetAnswer("All end users in the order of their ids"),
    },
  },
};

export type EndUsersDeps = {
  readonly reader: Pick<Reader, "endUsers">;
  readonly answers: ListAnswers;
  readonly addressOf: AddressOf;
  readonly watermark: ReadWatermark;
};

/** Specification, section 4.4; in byte order of ids. */
export const createEndUsers = ({ reader, answers, addressOf, watermark }: EndUsersDeps): Envelope => ({
  list,
  paths: [API_PREFIX + PATH.slice(0, -1), API_PREFIX + PATH],
  description,
  ask: async (call) => {
    const { client, request, signal } = call;
    const { values, problems } = readParameters(parameters, request.raw.url ?? "");
    if (problems.length > 0) throw badRequest(problems);
    const { limit = DEFAULT_LIMIT, cursor = "", external_id: externalId = "" } = values;
    const query = { clientId: client.clientId, from: cursor, ...(externalId !== "" && { externalId }) };
    const linkTo = (next: string): string =>
      `${addressOf(request)}${PATH}?${writeQuery([
        ["cursor", next],
        ["limit", String(limit)],
        ...(externalId === "" ? [] : [["external_id", externalId] as const]),
      ])}`;
    return {
      watermark: await watermark(list),
      page: async (headers) =>
        answers.page(call, await reader.endUsers({ ...query, limit, signal }), {
          headers,
          end: (end) => ({ meta: { next_page_url: end?.next == null ? null : linkTo(end.next) } }),
        }),
      steps: (lists) => lists.endUsers(query),
    };
  },
});
