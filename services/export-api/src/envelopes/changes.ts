import {
  type ChangePosition,
  decodeChangePosition,
  DELETIONS_KEPT_DAYS,
  encodeChangePosition,
  formatTimestampZ,
  isExpiredPosition,
  type ListName,
  signedChange,
} from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import type { Reader } from "@conversation-export/warehouse";
import { z } from "zod";
import type { ListAnswers } from "../formats/list-answers.ts";
import { JSON_TYPE, LINES_TYPES, PARQUET_TYPE } from "../formats/stream-type.ts";
import { badRequest, cursorExpired } from "../http/api-error.ts";
import { API_PREFIX } from "../http/service-address.ts";
import { LISTS } from "../lists/lists.ts";
import type { ReadStable } from "../lists/stable-cache.ts";
import { type Description, linesAnswer, PAGE_HEADERS, parquetAnswer } from "../openapi/description.ts";
import * as examples from "../openapi/examples.ts";
import { clampInstant, instant } from "../parameters/instant-parameter.ts";
import { MAX_PAGE_SIZE, readParameters, wholeNumber } from "../parameters/parameters.ts";
import { createCursors, type CursorSecrets } from "./cursor-signer.ts";
import type { Envelope } from "./list-endpoint.ts";

const DEFAULT_PAGE_SIZE = 1_000;

const parameters = z.object({
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

/** One schema for each name of an id: components are shared by lists. */
const DELETED = [deletedRecord, deletedEndUser];
const deletedBy = (id: string): z.ZodObject => {
  const found = DELETED.find(({ shape }) => id in shape);
  if (found === undefined) throw new TypeError(`no schema of deleted records has the id ${id}`);
  return found;
};

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

const describe = (list: ListName): Description => {
  const { id, noun, record, example } = LISTS[list];
  const data = [
    example,
    { [id]: "664f00019b1d8a0012a30001", deleted: true, deleted_at: examples.DELETED_AT },
  ];
  const meta = {
    next_cursor: examples.CURSOR,
    next_stored_since: examples.WATERMARK,
    end_of_stream: true,
  };
  return {
    operationId: `changesOf${noun}`,
    summary: `Changes of ${list.replace("_", " ")}`,
    tag: "Changes",
    text: about(id),
    requestParams: { query: parameters },
    success: {
      description: "Changes, or all of them as lines or as Parquet",
      headers: PAGE_HEADERS,
      content: {
        [JSON_TYPE]: {
          schema: z.object({
            data: z.array(z.union([record, deletedBy(id)])),
            meta: z.object({
              next_cursor: z.string().describe("Where the next request goes on"),
              next_stored_since: z.string().meta({
                format: "date-time",
                description: `The same place as \`stored_since\`, for readers that can keep a date only; after a pause of more than ${DELETIONS_KEPT_DAYS} days they are not told of all deletions`,
              }),
              end_of_stream: z.boolean().describe("true: these were all changes; ask again later"),
            }),
          }),
          example: { data, meta },
        },
        ...linesAnswer(LINES_ABOUT, ...data, {
          trailer: { count: 2, watermark: examples.WATERMARK, ...meta },
        }),
        ...parquetAnswer(PARQUET_ABOUT),
      },
    },
    errors: ["CursorExpired"],
  };
};

export type ChangesDeps = CursorSecrets & {
  readonly reader: Pick<Reader, "changes">;
  readonly answers: ListAnswers;
  readonly stable: ReadStable;
  /** Epoch milliseconds. */
  readonly now: () => number;
};

const endOf = (from: ChangePosition, until: number): ChangePosition =>
  from.date >= until ? from : { date: until, id: "", begun: from.begun };

/** An extension of the specification. */
export const createChanges = (deps: ChangesDeps, list: ListName): Envelope => {
  const { reader, answers, stable, now } = deps;
  const { kind } = LISTS[list];
  const cursors = createCursors(deps, {
    encode: encodeChangePosition,
    decode: decodeChangePosition,
    signed: signedChange,
  });
  const read = (clientId: string, cursor: string): ChangePosition => {
    const position = cursors.read(cursor, { clientId, list });
    if (isExpiredPosition(position, now() * 1000)) throw cursorExpired(DELETIONS_KEPT_DAYS);
    return position;
  };

  return {
    list,
    paths: [`${API_PREFIX}/v2/export/changes/${list}`],
    description: describe(list),
    ask: async (call) => {
      const { signal, request } = call;
      const { clientId } = call.client;
      const { values, problems } = readParameters(parameters, request.raw.url ?? "");
      const { cursor, stored_since: since, page_size: pageSize = DEFAULT_PAGE_SIZE } = values;
      if (cursor !== undefined && since !== undefined) {
        problems.push("cursor, stored_since: a reader that has begun goes on with its cursor alone");
      }
      if (problems.length > 0) throw badRequest(problems);
      const from =
        cursor === undefined
          ? { date: clampInstant(since?.micros ?? 0), id: "", begun: now() * 1000 }
          : read(clientId, cursor);
      const { until, watermark } = await stable(list);
      if (until === undefined) {
        throw new ServiceError(
          "changes_not_stable",
          "the stable instant is unknown: jobs must run, and ClickHouse answer",
          { retryable: true },
        );
      }
      const goOn = (next: ChangePosition) => ({
        next_cursor: cursors.write(next, { clientId, list }),
        next_stored_since: formatTimestampZ(next.date),
      });
      const query = { clientId, kind, after: from, stableUpTo: until };
      return {
        watermark,
        facts: () => ({ ...goOn(endOf(from, until)), end_of_stream: true }),
        page: async (headers) =>
          answers.page(call, await reader.changes({ ...query, pageSize, signal }), {
            headers,
            end: (end) => ({
              meta: end && { ...goOn({ ...end.next, begun: from.begun }), end_of_stream: end.isLast },
            }),
          }),
        steps: (lists) => lists.changes(query),
      };
    },
  };
};
