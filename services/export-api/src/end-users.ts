import type { Reader } from "@conversation-export/warehouse";
import { z } from "zod";
import { badRequest } from "./api-error.ts";
import type { Endpoint } from "./endpoint.ts";
import { watermarkHeader } from "./export-endpoints.ts";
import { readParameters, wholeNumber } from "./parameters.ts";
import { writeQuery } from "./query-string.ts";
import type { SendPage } from "./send-page.ts";
import { API_PREFIX, type AddressOf } from "./service-address.ts";
import type { ReadWatermark } from "./watermark.ts";

const LIST = "end_users";
const PATH = "/v2/end-users/";
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;

/** The query of a request for end users (section 4.4 of the specification). An empty value means absent. */
export const endUserParameters = z.object({
  limit: wholeNumber(1, MAX_LIMIT, DEFAULT_LIMIT)
    .optional()
    .meta({ description: "The largest number of records in a page", examples: [100] }),
  // Not nullable: somebody's id may be the text null.
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

export type EndUsersDeps = {
  readonly reader: Pick<Reader, "endUsers">;
  readonly sendPage: SendPage;
  readonly addressOf: AddressOf;
  readonly watermark: ReadWatermark;
};

/** The listing of end users (section 4.4 of the specification), in the byte order of their ids. */
export const createEndUsers = (deps: EndUsersDeps): Endpoint => {
  const { reader, sendPage, addressOf, watermark } = deps;

  return {
    name: LIST,
    method: "GET",
    paths: [API_PREFIX + PATH.slice(0, -1), API_PREFIX + PATH],
    scope: LIST,
    limit: LIST,
    slot: "page",
    serve: async (call) => {
      const { client, request, signal } = call;
      const { values, problems } = readParameters(endUserParameters, request.raw.url ?? "");
      if (problems.length > 0) throw badRequest(problems);
      const { limit = DEFAULT_LIMIT, cursor = "", external_id: externalId = "" } = values;
      // Asked before the records: what it promises is in them.
      const readable = await watermark(LIST);
      const page = await reader.endUsers({
        clientId: client.clientId,
        from: cursor,
        limit,
        ...(externalId !== "" && { externalId }),
        signal,
      });
      const link =
        page.next === null ? null : addressOf(request) + PATH + nextQuery(page.next, limit, externalId);
      await sendPage(call, {
        contentType: "application/json",
        head: '{"data":[',
        records: page.records,
        rows: () => page.rows,
        tail: () => `],"meta":{"next_page_url":${JSON.stringify(link)}}}`,
        headers: { ...watermarkHeader(readable), ...(link !== null && { link: `<${link}>; rel="next"` }) },
      });
    },
  };
};

const nextQuery = (cursor: string, limit: number, externalId: string): string =>
  `?${writeQuery([
    ["cursor", cursor],
    ["limit", String(limit)],
    ...(externalId === "" ? [] : [["external_id", externalId] as const]),
  ])}`;
