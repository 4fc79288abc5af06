import { publicConversation, publicMessage } from "@conversation-export/domain";
import type { Reader } from "@conversation-export/warehouse";
import { z } from "zod";
import type { ZodOpenApiMediaTypeObject } from "zod-openapi";
import { badRequest } from "../http/api-error.ts";
import type { Call, Endpoint } from "./endpoint.ts";
import { CONVERSATIONS, type ExportList, MESSAGES } from "../page/export-lists.ts";
import { JSON_TYPE, LINES_TYPES, PARQUET_TYPE, streamTypeOf } from "../page/stream-type.ts";
import type { PageLinks } from "../page/page-link.ts";
import {
  conversationParameters,
  messageParameters,
  readConversationParameters,
  readMessageParameters,
} from "./export-parameters.ts";
import type { PageRequest, PageRequestResult } from "../page/parameters.ts";
import { type Description, linkSchema, NOTICE, PAGE_HEADERS, parquetAnswer } from "../openapi/description.ts";
import * as examples from "../openapi/examples.ts";
import { sendParquet } from "../parquet/send-parquet.ts";
import type { NoteRepeats } from "../page/repeated-requests.ts";
import type { SendPage } from "../page/send-page.ts";
import { API_PREFIX, type AddressOf } from "../http/service-address.ts";
import { type ReadWatermark, watermarkHeader } from "../page/watermark.ts";
import { openWindow } from "../page/window-stream.ts";

const STREAMS = [...LINES_TYPES, PARQUET_TYPE];

const LINES_ABOUT = `The whole window, one record a line in the order of the pages, and a last line
\`{"trailer":{"count":…,"watermark":…}}\`. Without the trailer the stream is broken: resume it with the date of the
last whole line as the lower bound.`;

const linesMedia = (example: object): ZodOpenApiMediaTypeObject => ({
  schema: z.string().describe(LINES_ABOUT),
  example: examples.linesOf(example, { trailer: { count: 1, watermark: examples.WATERMARK } }),
});

const successOf = (record: z.ZodType, example: object): Description["success"] => ({
  description: "A page, or the whole window as lines or as Parquet",
  headers: { ...PAGE_HEADERS, ...NOTICE },
  content: {
    [JSON_TYPE]: {
      schema: z.object({
        data: z.array(record),
        meta: z.object({ next_page_uri: linkSchema("an absolute address") }),
      }),
      example: { data: [example], meta: { next_page_uri: null } },
    },
    ...Object.fromEntries(LINES_TYPES.map((type) => [type, linesMedia(example)])),
    [PARQUET_TYPE]: parquetAnswer("The whole window in the order of the pages"),
  },
});

const WINDOW_ABOUT = `The lower bound is inclusive, the upper one exclusive, so adjacent windows neither lose nor repeat a
record. They have \`Z\` or an offset; in a link they are in UTC. A window may be of any length. With
\`Accept: ${LINES_TYPES[0]}\` the whole window comes as one stream of lines, with \`Accept: ${PARQUET_TYPE}\` as one
file; either counts as one request, and \`page_size\` has no meaning then. A file takes no \`cursor\`.`;

const conversationsDescription: Description = {
  operationId: "exportConversations",
  summary: "Conversations",
  tag: "Export",
  text:
    "Conversations that were created in a window, or, with the `updated_` parameters, updated in it, in the order of " +
    `that date.\n\n${WINDOW_ABOUT}`,
  requestParams: { query: conversationParameters },
  success: {
    ...successOf(
      publicConversation.meta({ id: "Conversation", description: "A conversation" }),
      examples.CONVERSATION,
    ),
    links: {
      messages: {
        operationId: "exportMessages",
        description: "The messages of a conversation",
        parameters: { conversation_id: "$response.body#/data/0/_id" },
      },
      endUser: {
        operationId: "listEndUsers",
        description: "The profile of the chatter, when it is asked for with a limit of 1",
        parameters: { cursor: "$response.body#/data/0/end_user_id" },
      },
    },
  },
};

const messagesDescription: Description = {
  operationId: "exportMessages",
  summary: "Messages",
  tag: "Export",
  text: `Messages that were created in a window, of all conversations or of one, in the order of that date.\n\n${WINDOW_ABOUT}`,
  requestParams: { query: messageParameters },
  success: successOf(
    publicMessage.meta({ id: "Message", description: "A message of a conversation" }),
    examples.MESSAGE,
  ),
};

export type ExportEndpointsDeps = {
  readonly reader: Reader;
  readonly links: PageLinks;
  readonly sendPage: SendPage;
  readonly addressOf: AddressOf;
  readonly watermark: ReadWatermark;
  readonly noteRepeats: NoteRepeats;
};

/** The export operations (sections 4.1 to 4.3 of the specification), as pages or as lines. */
export const createExportEndpoints = (deps: ExportEndpointsDeps): readonly Endpoint[] => {
  const { reader, links, sendPage, addressOf, watermark, noteRepeats } = deps;

  const sendOnePage = async (
    list: ExportList,
    path: string,
    wanted: PageRequest,
    { call, headers }: { call: Call; headers: Record<string, string> },
  ): Promise<void> => {
    const { client, signal } = call;
    const query = { ...links.query(client, list.name, wanted), signal };
    const page = wanted.since < wanted.to ? await list.readPage(reader, wanted.filter, query) : null;
    const repeats = noteRepeats(call, list.name, wanted);
    let rows = 0;
    await sendPage(call, {
      contentType: JSON_TYPE,
      head: '{"data":[',
      records: page?.records ?? null,
      rows: () => rows,
      tail: () => {
        const end = page?.end();
        rows = end?.rows ?? 0;
        const next = end === undefined ? null : links.next(client, list.name, wanted, end);
        const link = next === null ? null : `${addressOf(call.request)}${path}?${next}`;
        repeats.end(link !== null);
        return `],"meta":{"next_page_uri":${JSON.stringify(link)}}}`;
      },
      headers: { ...headers, ...repeats.headers },
    });
  };

  const sendWindow = async (
    list: ExportList,
    wanted: PageRequest,
    { call, headers, contentType }: { call: Call; headers: Record<string, string>; contentType: string },
    readable: string | undefined,
  ): Promise<void> => {
    const query = links.query(call.client, list.name, wanted);
    const steps = list.openSteps(reader.lines, wanted.filter, query);
    const window = wanted.since < wanted.to ? await openWindow(steps, call) : null;
    const count = (): number => window?.count() ?? 0;
    await sendPage(call, {
      contentType,
      head: "",
      records: window?.records ?? null,
      rows: count,
      tail: () => `${JSON.stringify({ trailer: { count: count(), watermark: readable ?? null } })}\n`,
      headers,
    });
  };

  const sendFile = async (
    list: ExportList,
    wanted: PageRequest,
    { call, headers }: { call: Call; headers: Record<string, string> },
    readable: string | undefined,
  ): Promise<void> => {
    if (wanted.cursor !== undefined) {
      throw badRequest(["cursor: a Parquet file is the whole window; ask for it without a cursor"]);
    }
    const { since, to, conversationId } = wanted;
    const query = {
      clientId: call.client.clientId,
      since,
      to,
      ...(conversationId !== undefined && { conversationId }),
    };
    const open = list.openSteps(reader.parquet, wanted.filter, query);
    await sendParquet(sendPage, call, open, { headers, facts: { watermark: readable } });
  };

  const endpoint = (
    list: ExportList,
    description: Description,
    readParameters: (target: string) => PageRequestResult,
  ): Endpoint => {
    const path = `/v2/export/${list.name}`;
    return {
      method: "GET",
      paths: [API_PREFIX + path],
      scope: "export",
      limit: list.name,
      slot: "page",
      streams: STREAMS,
      description,
      serve: async (call) => {
        const result = readParameters(call.request.raw.url ?? "");
        if ("problems" in result) throw badRequest(result.problems);
        // Before the records: they hold every event that the watermark covers.
        const readable = await watermark(list.name);
        const headers = watermarkHeader(readable);
        const contentType = streamTypeOf(call.request.raw, STREAMS);
        if (contentType === undefined) await sendOnePage(list, path, result.request, { call, headers });
        else if (contentType === PARQUET_TYPE) {
          await sendFile(list, result.request, { call, headers }, readable);
        } else await sendWindow(list, result.request, { call, headers, contentType }, readable);
      },
    };
  };

  return [
    endpoint(CONVERSATIONS, conversationsDescription, readConversationParameters),
    endpoint(MESSAGES, messagesDescription, readMessageParameters),
  ];
};
