import {
  DELETIONS_KEPT_DAYS,
  publicConversation,
  publicEndUser,
  publicMessage,
  RECORD_KINDS,
  type RecordKind,
} from "@conversation-export/domain";
import { z } from "zod";
import { type Description, PAGE_HEADERS, parquetAnswer } from "../openapi/description.ts";
import * as examples from "../openapi/examples.ts";
import { instant } from "../parameters/instant-parameter.ts";
import { MAX_PAGE_SIZE, wholeNumber } from "../parameters/parameters.ts";
import { JSON_TYPE, LINES_TYPES, PARQUET_TYPE } from "../formats/stream-type.ts";

/** Records of a page when its size is not asked for. */
export const DEFAULT_PAGE_SIZE = 1_000;

/** Parameters of the query of each list of changes. */
export const CHANGE_PARAMETERS = z.object({
  cursor: z.string().nullish().meta({
    description: "`next_cursor` of the answer before, never made by hand; without it the reader begins",
  }),
  stored_since: instant.optional().meta({
    description:
      "Where a reader begins: only records that changed at this time or later; by default with everything",
    examples: ["2026-10-01T00:00:00Z"],
  }),
  page_size: wholeNumber(1, MAX_PAGE_SIZE, DEFAULT_PAGE_SIZE)
    .optional()
    .meta({ description: "The largest number of records in a page", examples: [1000] }),
});

const deletion = {
  deleted: z.literal(true),
  deleted_at: z.string().meta({ format: "date-time" }),
};
const deletedRecord = z
  .object({ _id: z.string(), ...deletion })
  .meta({ id: "DeletedRecord", description: "A record that was erased, or removed by retention" });
const deletedEndUser = z
  .object({ end_user_id: z.string(), ...deletion })
  .meta({ id: "DeletedEndUser", description: "An end user who was erased, or removed by retention" });

/** @param id the name of the id in these records */
const about = (
  id: string,
): string => `For jobs that keep a copy: the records that changed since the answer before,
in the order in which they were stored, each at its latest version, and those that are gone as
\`{"${id}":…,"deleted":true,"deleted_at":…}\`.

- Write by \`${id}\`, and keep \`next_cursor\` together with the data. While \`end_of_stream\` is false, ask on at once.
- Whenever it is true, you hold what the list holds up to \`X-Export-Watermark\`, whatever came late, changed again or
  was erased.
- Before the end a page may hold fewer records than its size, or none. A record may come again unchanged.
- A cursor is good for its client and list. When it was not used for more than ${DELETIONS_KEPT_DAYS} days it answers 410: begin again
  without it, and replace what you hold.
- \`cursor\` and \`stored_since\` exclude each other. A reader that can keep no more than a date keeps \`next_stored_since\`.
- With \`Accept: ${LINES_TYPES[0]}\` all changes up to the end come as one stream of lines, whatever the page size, with
  the cursor in the last line. With \`Accept: ${PARQUET_TYPE}\` they come as one file, with the columns \`deleted\` and
  \`deleted_at\`, and \`next_cursor\` among the facts of its footer.`;

const LINES_ABOUT = `One change a line, and a last line
\`{"trailer":{"count":…,"watermark":…,"next_cursor":…,"next_stored_since":…,"end_of_stream":true}}\`.
Without the trailer the stream is broken: repeat it with the same cursor.`;

const PARQUET_ABOUT = `All changes in their order. Of a deleted record only its id, \`deleted\` and \`deleted_at\` say
something. The facts of the footer are those of the last line of a stream of lines`;

/** Types of content of answers that are streams. */
export const CHANGE_STREAMS = [...LINES_TYPES, PARQUET_TYPE];

const idOf = { conversation: "_id", message: "_id", end_user: "end_user_id" } as const;

const PUBLIC = { conversation: publicConversation, message: publicMessage, end_user: publicEndUser } as const;

const EXAMPLES = {
  conversation: examples.CONVERSATION,
  message: examples.MESSAGE,
  end_user: examples.END_USER,
} as const;

const exampleOf = (kind: RecordKind) => ({
  data: [
    EXAMPLES[kind],
    { [idOf[kind]]: "664f00019b1d8a0012a30001", deleted: true, deleted_at: examples.DELETED_AT },
  ],
  meta: {
    next_cursor: examples.CURSOR,
    next_stored_since: examples.WATERMARK,
    end_of_stream: true,
  },
});

const linesOf = (kind: RecordKind): string => {
  const { data, meta } = exampleOf(kind);
  return examples.linesOf(...data, { trailer: { count: 2, watermark: examples.WATERMARK, ...meta } });
};

/**
 * Describes the changes of a list.
 *
 * @param name of the list in the id of the operation
 */
export const describeChanges = (kind: RecordKind, name: string): Description => ({
  operationId: `changesOf${name}`,
  summary: `Changes of ${RECORD_KINDS[kind].list.replace("_", " ")}`,
  tag: "Changes",
  text: about(idOf[kind]),
  requestParams: { query: CHANGE_PARAMETERS },
  success: {
    description: "Changes, or all of them as lines or as Parquet",
    headers: PAGE_HEADERS,
    content: {
      [JSON_TYPE]: {
        schema: z.object({
          data: z.array(z.union([PUBLIC[kind], kind === "end_user" ? deletedEndUser : deletedRecord])),
          meta: z.object({
            next_cursor: z.string().describe("Where the next request goes on"),
            next_stored_since: z.string().meta({
              format: "date-time",
              description: `The same place as \`stored_since\`, for readers that can keep a date only; after a pause of more than ${DELETIONS_KEPT_DAYS} days they are not told of all deletions`,
            }),
            end_of_stream: z.boolean().describe("true: these were all changes; ask again later"),
          }),
        }),
        example: exampleOf(kind),
      },
      ...Object.fromEntries(
        LINES_TYPES.map((type) => [
          type,
          { schema: z.string().describe(LINES_ABOUT), example: linesOf(kind) },
        ]),
      ),
      [PARQUET_TYPE]: parquetAnswer(PARQUET_ABOUT),
    },
  },
  errors: ["CursorExpired"],
});
