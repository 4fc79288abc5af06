import { publicConversation, publicMessage } from "@conversation-export/domain";
import type { OpenStep } from "@conversation-export/warehouse";
import { z } from "zod";
import type { ZodOpenApiMediaTypeObject } from "zod-openapi";
import { badRequest } from "../http/api-error.ts";
import type { Call, Endpoint } from "../operations/endpoint.ts";
import { CONVERSATIONS, type ExportList, MESSAGES } from "../lists/export-lists.ts";
import { JSON_TYPE, LINES_TYPES, PARQUET_TYPE, streamTypeOf } from "../formats/stream-type.ts";
import { type PageRequest, type PageRequestResult, WINDOWS } from "../parameters/window-parameters.ts";
import { type Description, linkSchema, NOTICE, PAGE_HEADERS, parquetAnswer } from "../openapi/description.ts";
import * as examples from "../openapi/examples.ts";
import { API_PREFIX, type AddressOf } from "../http/service-address.ts";
import { type ReadWatermark, watermarkHeader } from "../lists/watermark.ts";
import { createWindowPages, type WindowForm, type WindowPagesDeps } from "./window-pages.ts";

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
  requestParams: { query: WINDOWS.conversations.query },
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
  requestParams: { query: WINDOWS.messages.query },
  success: successOf(
    publicMessage.meta({ id: "Message", description: "A message of a conversation" }),
    examples.MESSAGE,
  ),
};

export type ExportEndpointsDeps = WindowPagesDeps & {
  readonly addressOf: AddressOf;
  readonly watermark: ReadWatermark;
};

/** The export operations (sections 4.1 to 4.3 of the specification), as pages, as lines or as Parquet. */
export const createExportEndpoints = (deps: ExportEndpointsDeps): readonly Endpoint[] => {
  const { reader, links, answers, addressOf, watermark } = deps;
  const sendWindowPage = createWindowPages(deps);

  const endpoint = (
    list: ExportList,
    description: Description,
    readParameters: (target: string) => PageRequestResult,
  ): Endpoint => {
    const { name } = list;
    const path = `/v2/export/${name}`;
    const form: WindowForm = {
      list,
      name,
      end: ({ request }, next) => ({
        meta: { next_page_uri: next === null ? null : `${addressOf(request)}${path}?${next}` },
      }),
    };

    const openFile = ({ client: { clientId } }: Call, wanted: PageRequest): OpenStep => {
      if (wanted.cursor !== undefined) {
        throw badRequest(["cursor: a Parquet file is the whole window; ask for it without a cursor"]);
      }
      const { since, to, conversationId } = wanted;
      const query = { clientId, since, to, ...(conversationId !== undefined && { conversationId }) };
      return list.openSteps(reader.parquet, wanted.filter, query);
    };
    const openLines = ({ client }: Call, wanted: PageRequest): OpenStep | null => {
      const open = list.openSteps(reader.lines, wanted.filter, links.query(client, name, wanted));
      return wanted.since < wanted.to ? open : null;
    };

    return {
      method: "GET",
      paths: [API_PREFIX + path],
      scope: "export",
      limit: name,
      slot: "page",
      streams: STREAMS,
      description,
      serve: async (call) => {
        const result = readParameters(call.request.raw.url ?? "");
        if ("problems" in result) throw badRequest(result.problems);
        const wanted = result.request;
        // Before the records: they hold every event that the watermark covers.
        const readable = await watermark(name);
        const headers = watermarkHeader(readable);
        const contentType = streamTypeOf(call.request.raw, STREAMS);
        if (contentType === undefined) return sendWindowPage(call, form, wanted, headers);
        if (contentType === PARQUET_TYPE)
          return answers.file(call, openFile(call, wanted), { headers, facts: { watermark: readable } });
        const trailer = { watermark: readable ?? null };
        return answers.lines(call, openLines(call, wanted), { contentType, headers, trailer });
      },
    };
  };

  return [
    endpoint(CONVERSATIONS, conversationsDescription, (target) => WINDOWS.conversations.read(target, 0)),
    endpoint(MESSAGES, messagesDescription, WINDOWS.messages.read),
  ];
};
