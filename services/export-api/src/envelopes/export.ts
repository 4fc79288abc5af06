import { z } from "zod";
import { JSON_TYPE, LINES_TYPES, PARQUET_TYPE } from "../formats/stream-type.ts";
import { API_PREFIX, type AddressOf } from "../http/service-address.ts";
import { LISTS, type WindowList } from "../lists/lists.ts";
import {
  type Description,
  linesAnswer,
  linkSchema,
  NOTICE,
  PAGE_HEADERS,
  parquetAnswer,
} from "../openapi/description.ts";
import { WATERMARK } from "../openapi/examples.ts";
import { WINDOWS } from "../parameters/window-parameters.ts";
import type { Envelope } from "./list-endpoint.ts";
import { askWindow, type WindowDeps } from "./window.ts";

const LINES_ABOUT = `The whole window, one record a line in the order of the pages, and a last line
\`{"trailer":{"count":…,"watermark":…}}\`. Without the trailer the stream is broken: resume it with the date of the
last whole line as the lower bound.`;

type About = Pick<Description, "text"> &
  Pick<Description["success"], "links"> & { readonly component: { id: string; description: string } };

const successOf = (list: WindowList, { component, links }: About): Description["success"] => {
  const { record, example } = LISTS[list];
  return {
    description: "A page, or the whole window as lines or as Parquet",
    headers: { ...PAGE_HEADERS, ...NOTICE },
    content: {
      [JSON_TYPE]: {
        schema: z.object({
          data: z.array(record.meta(component)),
          meta: z.object({ next_page_uri: linkSchema("an absolute address") }),
        }),
        example: { data: [example], meta: { next_page_uri: null } },
      },
      ...linesAnswer(LINES_ABOUT, example, { trailer: { count: 1, watermark: WATERMARK } }),
      ...parquetAnswer("The whole window in the order of the pages"),
    },
    ...(links && { links }),
  };
};

const WINDOW_ABOUT = `The lower bound is inclusive, the upper one exclusive, so adjacent windows neither lose nor repeat a
record. They have \`Z\` or an offset; in a link they are in UTC. A window may be of any length. With
\`Accept: ${LINES_TYPES[0]}\` the whole window comes as one stream of lines, with \`Accept: ${PARQUET_TYPE}\` as one
file; either counts as one request, and \`page_size\` has no meaning then. A file takes no \`cursor\`.`;

const DESCRIPTIONS: Readonly<Record<WindowList, About>> = {
  conversations: {
    text:
      "Conversations that were created in a window, or, with the `updated_` parameters, updated in it, in the order of " +
      `that date.\n\n${WINDOW_ABOUT}`,
    component: { id: "Conversation", description: "A conversation" },
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
  messages: {
    text: `Messages that were created in a window, of all conversations or of one, in the order of that date.\n\n${WINDOW_ABOUT}`,
    component: { id: "Message", description: "A message of a conversation" },
  },
};

export type ExportDeps = WindowDeps & { readonly addressOf: AddressOf };

/** Specification, sections 4.1 to 4.3. */
export const createExport = (deps: ExportDeps, list: WindowList): Envelope => {
  const path = `/v2/export/${list}`;
  const { query, read } = WINDOWS[list];
  return {
    list,
    paths: [API_PREFIX + path],
    description: {
      operationId: `export${LISTS[list].noun}`,
      summary: LISTS[list].noun,
      tag: "Export",
      requestParams: { query },
      text: DESCRIPTIONS[list].text,
      success: successOf(list, DESCRIPTIONS[list]),
    },
    ask: askWindow(deps, {
      list,
      name: list,
      read: (target) => read(target, 0),
      end: ({ request }, next) => ({
        meta: { next_page_uri: next === null ? null : `${deps.addressOf(request)}${path}?${next}` },
      }),
    }),
  };
};
