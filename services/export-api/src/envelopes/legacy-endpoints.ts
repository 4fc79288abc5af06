import {
  createView,
  LEGACY_FIELDS,
  LEGACY_VERSIONS,
  type LegacyVersion,
  publicConversation,
  publicMessage,
} from "@conversation-export/domain";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { badRequest } from "../http/api-error.ts";
import type { Endpoint } from "../operations/endpoint.ts";
import { type Description, header, linkSchema, NOTICE, PAGE_HEADERS } from "../openapi/description.ts";
import { CONVERSATION, MESSAGE } from "../openapi/examples.ts";
import { CONVERSATIONS, type ExportList, MESSAGES } from "../lists/export-lists.ts";
import { createLegacyRecords } from "../formats/legacy-records.ts";
import { LEGACY_WINDOWS, type PageRequestResult } from "../parameters/window-parameters.ts";
import { type AddressOf, API_PREFIX } from "../http/service-address.ts";
import { type ReadWatermark, watermarkHeader } from "../lists/watermark.ts";
import { createWindowPages, type WindowForm, type WindowPagesDeps } from "./window-pages.ts";

const HEADERS = {
  "X-Export-Watermark": PAGE_HEADERS["X-Export-Watermark"],
  ...NOTICE,
  Deprecation: header(
    "Deprecation",
    z.string().optional(),
    "Since when this version is deprecated, as `@` and Unix seconds; absent when it is not announced",
  ),
  Sunset: header(
    "Sunset",
    z.string().optional(),
    "When this version goes, as an HTTP date; absent when it is not announced",
  ),
  Link: header("Legacy-Link", z.string(), 'The operation of version 2 as `rel="successor-version"`'),
};

const DESCRIBED = {
  conversations: {
    noun: "Conversations",
    query: LEGACY_WINDOWS.conversations.query,
    record: publicConversation,
    example: CONVERSATION,
  },
  messages: {
    noun: "Messages",
    query: LEGACY_WINDOWS.messages.query,
    record: publicMessage,
    example: MESSAGE,
  },
} as const;

const descriptionOf = (list: ExportList["name"], version: LegacyVersion): Description => {
  const { noun, query, record, example } = DESCRIBED[list];
  const fields: readonly string[] = LEGACY_FIELDS[list][version];
  const viewOf = <Value>(whole: Readonly<Record<string, Value>>): Record<string, Value> =>
    Object.fromEntries(Object.entries(whole).filter(([name]) => fields.includes(name)));
  const schema = z.object({
    data: z.array(z.object(viewOf(record.shape))),
    message: z.literal("OK"),
    next_page_uri: linkSchema("an address relative to this host"),
  });
  return {
    operationId: `legacy${noun}${version.replace("v", "V").replace(".", "_")}`,
    summary: `${noun}, ${version}`,
    tag: "Legacy",
    text: `${noun} with the fields of ${version}, in pages. Use /v2/export/${list} instead.`,
    deprecated: true,
    requestParams: { query },
    success: {
      description: "A page",
      headers: HEADERS,
      content: {
        "application/json": {
          schema,
          example: { data: [viewOf<unknown>(example)], message: "OK", next_page_uri: null },
        },
      },
    },
  };
};

/** `links`: in the legacy form. */
export type LegacyEndpointsDeps = WindowPagesDeps & {
  readonly addressOf: AddressOf;
  readonly watermark: ReadWatermark;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** When the legacy versions were deprecated and when they end; undefined when that is not announced. */
  readonly deprecation: Date | undefined;
  readonly sunset: Date | undefined;
};

/**
 * The versions before v2 (sections 4.6 and 9 of the specification): pages in the legacy envelope with the
 * fields of their version; the link is relative, under the prefix of the request.
 */
export const createLegacyEndpoints = (deps: LegacyEndpointsDeps): readonly Endpoint[] => {
  const { addressOf, watermark, now } = deps;
  const sendWindowPage = createWindowPages(deps);
  const announced: Readonly<Record<string, string>> = {
    ...(deps.deprecation && { deprecation: `@${Math.floor(deps.deprecation.getTime() / 1000)}` }),
    ...(deps.sunset && { sunset: deps.sunset.toUTCString() }),
  };

  const endpoint = (
    list: ExportList,
    version: LegacyVersion,
    readParameters: (target: string) => PageRequestResult,
  ): Endpoint => {
    const path = `/data_api/${version}/${list.name}`;
    const view = createView(LEGACY_FIELDS[list.name][version]);
    const form: WindowForm = {
      list,
      name: `legacy-${list.name}-${version}`,
      view: () => createLegacyRecords(view),
      end: ({ request }, next) => ({
        message: "OK",
        next_page_uri: next === null ? null : `${request.routeOptions.url ?? path}?${next}`,
      }),
    };
    const successor = (request: FastifyRequest): string =>
      `<${addressOf(request)}/v2/export/${list.name}>; rel="successor-version"`;

    return {
      method: "GET",
      paths: [path, API_PREFIX + path],
      scope: "export",
      limit: list.name,
      slot: "page",
      description: descriptionOf(list.name, version),
      headers: (request) => ({ ...announced, link: successor(request) }),
      serve: async (call) => {
        const result = readParameters(call.request.raw.url ?? "");
        if ("problems" in result) throw badRequest(result.problems);
        // Before the records: they hold every event that the watermark covers.
        const headers = watermarkHeader(await watermark(list.name));
        await sendWindowPage(call, form, result.request, headers);
      },
    };
  };

  return LEGACY_VERSIONS.flatMap((version) => [
    endpoint(CONVERSATIONS, version, (target) => LEGACY_WINDOWS.conversations.read(target, now() * 1000)),
    endpoint(MESSAGES, version, LEGACY_WINDOWS.messages.read),
  ]);
};
