import type { IncomingMessage } from "node:http";
import type { Reader } from "@conversation-export/warehouse";
import Negotiator from "negotiator";
import { badRequest } from "./api-error.ts";
import type { Call, Endpoint } from "./endpoint.ts";
import { CONVERSATIONS, type ExportList, MESSAGES } from "./export-lists.ts";
import type { PageLinks } from "./page-links.ts";
import {
  type PageRequest,
  type PageRequestResult,
  readConversationParameters,
  readMessageParameters,
} from "./parameters.ts";
import type { SendPage } from "./send-page.ts";
import { API_PREFIX, type AddressOf } from "./service-address.ts";
import type { ReadWatermark } from "./watermark.ts";
import { openWindow, pageSteps, rangeSteps } from "./window-stream.ts";

const JSON_TYPE = "application/json";
export const LINES_TYPE = "application/x-ndjson";

export type ExportEndpointsDeps = {
  readonly reader: Reader;
  readonly links: PageLinks;
  readonly sendPage: SendPage;
  readonly addressOf: AddressOf;
  readonly watermark: ReadWatermark;
};

/** The export operations (sections 4.1 to 4.3 of the specification), as pages or as lines. */
export const createExportEndpoints = (deps: ExportEndpointsDeps): readonly Endpoint[] => {
  const { reader, links, sendPage, addressOf, watermark } = deps;

  const sendOnePage = async (
    list: ExportList,
    path: string,
    wanted: PageRequest,
    { call, headers }: { call: Call; headers: Record<string, string> },
  ): Promise<void> => {
    const { client, signal } = call;
    const query = { ...links.query(client, list.name, wanted), signal };
    const page = wanted.since < wanted.to ? await list.readPage(reader, wanted.filter, query) : null;
    const linkQuery = page === null ? null : links.next(client, list.name, wanted, page);
    const link = linkQuery === null ? null : `${addressOf(call.request)}${path}?${linkQuery}`;
    await sendPage(call, {
      contentType: JSON_TYPE,
      head: '{"data":[',
      records: page?.records ?? null,
      rows: () => page?.rows ?? 0,
      tail: () => `],"meta":{"next_page_uri":${JSON.stringify(link)}}}`,
      headers: { ...headers, ...(link !== null && { link: `<${link}>; rel="next"` }) },
    });
  };

  const sendWindow = async (
    list: ExportList,
    wanted: PageRequest,
    { call, headers }: { call: Call; headers: Record<string, string> },
    readable: string | undefined,
  ): Promise<void> => {
    const query = links.query(call.client, list.name, wanted);
    const inOrder =
      wanted.filter === "created" && query.after === undefined && query.conversationId === undefined;
    const steps = inOrder
      ? rangeSteps(reader.lines[list.name], query)
      : pageSteps((page) => list.readPage(reader, wanted.filter, page), query);
    const window = wanted.since < wanted.to ? await openWindow(steps, call.signal) : null;
    const count = (): number => window?.count() ?? 0;
    await sendPage(call, {
      contentType: LINES_TYPE,
      head: "",
      records: window?.records ?? null,
      rows: count,
      tail: () => `${JSON.stringify({ trailer: { count: count(), watermark: readable ?? null } })}\n`,
      headers,
    });
  };

  const endpoint = (list: ExportList, readParameters: (target: string) => PageRequestResult): Endpoint => {
    const path = `/v2/export/${list.name}`;
    return {
      name: list.name,
      method: "GET",
      paths: [API_PREFIX + path],
      scope: "export",
      limit: list.name,
      slot: "page",
      serve: async (call) => {
        const result = readParameters(call.request.raw.url ?? "");
        if ("problems" in result) throw badRequest(result.problems);
        // Asked before the records: what it promises is in them.
        const readable = await watermark(list.name);
        const headers = watermarkHeader(readable);
        if (wantsLines(call.request.raw)) await sendWindow(list, result.request, { call, headers }, readable);
        else await sendOnePage(list, path, result.request, { call, headers });
      },
    };
  };

  return [endpoint(CONVERSATIONS, readConversationParameters), endpoint(MESSAGES, readMessageParameters)];
};

/** The header that tells up to where the list is complete. */
export const watermarkHeader = (readable: string | undefined): Record<string, string> =>
  readable === undefined ? {} : { "x-export-watermark": readable };

const wantsLines = (request: IncomingMessage): boolean =>
  new Negotiator(request).mediaType([JSON_TYPE, LINES_TYPE]) === LINES_TYPE;
