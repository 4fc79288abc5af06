import { pipeline } from "node:stream";
import { createView, LEGACY_FIELDS, LEGACY_VERSIONS, type LegacyVersion } from "@conversation-export/domain";
import type { Reader } from "@conversation-export/warehouse";
import type { FastifyRequest } from "fastify";
import { badRequest } from "./api-error.ts";
import type { CursorSigner } from "./cursor.ts";
import type { Endpoint } from "./endpoint.ts";
import { watermarkHeader } from "./export-endpoints.ts";
import { CONVERSATIONS, type ExportList, MESSAGES } from "./export-lists.ts";
import {
  LEGACY_LINK_FORM,
  readLegacyConversationParameters,
  readLegacyMessageParameters,
} from "./legacy-parameters.ts";
import { createLegacyRecords } from "./legacy-records.ts";
import type { LinkBounds } from "./next-page.ts";
import { createPageLinks } from "./page-links.ts";
import type { PageRequestResult } from "./parameters.ts";
import type { SendPage } from "./send-page.ts";
import { type AddressOf, API_PREFIX } from "./service-address.ts";
import type { ReadWatermark } from "./watermark.ts";

export type LegacyEndpointsDeps = {
  readonly reader: Reader;
  readonly cursors: CursorSigner;
  /** For clients that have no link style of their own. */
  readonly linkBounds: LinkBounds;
  readonly sendPage: SendPage;
  readonly addressOf: AddressOf;
  readonly watermark: ReadWatermark;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Since when the legacy versions are deprecated, and when they go; undefined: it is not announced. */
  readonly deprecation: Date | undefined;
  readonly sunset: Date | undefined;
};

/**
 * The versions before v2 (sections 4.6 and 9 of the specification): pages in the legacy envelope with the fields
 * of their version, the link relative and under the prefix that was called.
 */
export const createLegacyEndpoints = (deps: LegacyEndpointsDeps): readonly Endpoint[] => {
  const { reader, sendPage, addressOf, watermark, now } = deps;
  const links = createPageLinks({ ...deps, form: LEGACY_LINK_FORM });
  const announced: Readonly<Record<string, string>> = {
    ...(deps.deprecation && { deprecation: `@${Math.floor(deps.deprecation.getTime() / 1000)}` }),
    ...(deps.sunset && { sunset: deps.sunset.toUTCString() }),
  };

  const endpoint = (
    list: ExportList,
    version: LegacyVersion,
    readParameters: (target: string) => PageRequestResult,
  ): Endpoint => {
    const name = `legacy-${list.name}-${version}`;
    const path = `/data_api/${version}/${list.name}`;
    const view = createView(LEGACY_FIELDS[list.name][version]);
    const successor = (request: FastifyRequest): string =>
      `<${addressOf(request)}/v2/export/${list.name}>; rel="successor-version"`;

    return {
      name,
      method: "GET",
      paths: [path, API_PREFIX + path],
      scope: "export",
      limit: list.name,
      slot: "page",
      headers: (request) => ({ ...announced, link: successor(request) }),
      serve: async (call) => {
        const { client, request, signal } = call;
        const result = readParameters(request.raw.url ?? "");
        if ("problems" in result) throw badRequest(result.problems);
        const wanted = result.request;
        const query = { ...links.query(client, name, wanted), signal, separator: "\n" } as const;
        // Asked before the records: what it promises is in them.
        const readable = await watermark(list.name);
        const page = wanted.since < wanted.to ? await list.readPage(reader, wanted.filter, query) : null;
        const linkQuery = page === null ? null : links.next(client, name, wanted, page);
        const link = linkQuery === null ? null : `${request.routeOptions.url ?? path}?${linkQuery}`;
        // The callback does nothing: whoever reads the records gets their error.
        const records = page && pipeline(page.records, createLegacyRecords(view), () => {});
        await sendPage(call, {
          contentType: "application/json",
          head: '{"data":[',
          records,
          rows: () => page?.rows ?? 0,
          tail: () => `],"message":"OK","next_page_uri":${JSON.stringify(link)}}`,
          headers: {
            ...watermarkHeader(readable),
            ...(link !== null && { link: `<${link}>; rel="next", ${successor(request)}` }),
          },
        });
      },
    };
  };

  return LEGACY_VERSIONS.flatMap((version) => [
    endpoint(CONVERSATIONS, version, (target) => readLegacyConversationParameters(target, now() * 1000)),
    endpoint(MESSAGES, version, readLegacyMessageParameters),
  ]);
};
