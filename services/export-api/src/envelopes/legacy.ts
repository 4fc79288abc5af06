import { createView, LEGACY_FIELDS, type LegacyList, type LegacyVersion } from "@conversation-export/domain";
import { z } from "zod";
import { createLegacyRecords } from "../formats/legacy-records.ts";
import { type AddressOf, API_PREFIX } from "../http/service-address.ts";
import { LISTS } from "../lists/lists.ts";
import { type Description, header, linkSchema, NOTICE, PAGE_HEADERS } from "../openapi/description.ts";
import { LEGACY_WINDOWS } from "../parameters/window-parameters.ts";
import type { Envelope } from "./list-endpoint.ts";
import { askWindow, type WindowDeps } from "./window.ts";

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

const descriptionOf = (list: LegacyList, version: LegacyVersion): Description => {
  const { noun, record, example } = LISTS[list];
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
    requestParams: { query: LEGACY_WINDOWS[list].query },
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

export type LegacyDeps = WindowDeps & {
  readonly addressOf: AddressOf;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** undefined: not announced. */
  readonly deprecation: Date | undefined;
  readonly sunset: Date | undefined;
};

/** Specification, sections 4.6 and 9. */
export const createLegacy = (deps: LegacyDeps, list: LegacyList, version: LegacyVersion): Envelope => {
  const path = `/data_api/${version}/${list}`;
  const view = createView(LEGACY_FIELDS[list][version]);
  const announced: Readonly<Record<string, string>> = {
    ...(deps.deprecation && { deprecation: `@${Math.floor(deps.deprecation.getTime() / 1000)}` }),
    ...(deps.sunset && { sunset: deps.sunset.toUTCString() }),
  };
  return {
    list,
    paths: [path, API_PREFIX + path],
    description: descriptionOf(list, version),
    headers: (request) => ({
      ...announced,
      link: `<${deps.addressOf(request)}/v2/export/${list}>; rel="successor-version"`,
    }),
    ask: askWindow(deps, {
      list,
      name: `legacy-${list}-${version}`,
      read: (target) => LEGACY_WINDOWS[list].read(target, deps.now() * 1000),
      view: () => createLegacyRecords(view),
      end: ({ request }, next) => ({
        message: "OK",
        next_page_uri: next === null ? null : `${request.routeOptions.url ?? path}?${next}`,
      }),
    }),
  };
};
