import {
  type ChangePosition,
  decodeChangePosition,
  DELETIONS_KEPT_DAYS,
  encodeChangePosition,
  formatTimestampZ,
  isExpiredPosition,
  publicConversation,
  publicEndUser,
  publicMessage,
  RECORD_KINDS,
  type RecordKind,
  signedChange,
} from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import type { ApiClient, Reader } from "@conversation-export/warehouse";
import { z } from "zod";
import { badRequest, cursorExpired } from "../http/api-error.ts";
import { API_PREFIX } from "../http/service-address.ts";
import { type Description, PAGE_HEADERS, parquetAnswer } from "../openapi/description.ts";
import * as examples from "../openapi/examples.ts";
import { sendParquet } from "../parquet/send-parquet.ts";
import { createCursorSigner } from "../page/cursor-signer.ts";
import { clampInstant, instant } from "../page/instant-parameter.ts";
import { JSON_TYPE, LINES_TYPES, PARQUET_TYPE, streamTypeOf } from "../page/stream-type.ts";
import { MAX_PAGE_SIZE, readParameters, wholeNumber } from "../page/parameters.ts";
import type { SendPage } from "../page/send-page.ts";
import type { ReadSettled } from "../page/settled.ts";
import { watermarkHeader } from "../page/watermark.ts";
import { endLastLine, type OpenStep, openWindow } from "../page/window-stream.ts";
import type { Call, Endpoint } from "./endpoint.ts";

const DEFAULT_PAGE_SIZE = 1_000;
/** Records that a stream of lines reads at a time. */
const STEP = 10_000;

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

const STREAMS = [...LINES_TYPES, PARQUET_TYPE];

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

const describe = (kind: RecordKind, name: string): Description => ({
  operationId: `changesOf${name}`,
  summary: `Changes of ${RECORD_KINDS[kind].list.replace("_", " ")}`,
  tag: "Changes",
  text: about(idOf[kind]),
  requestParams: { query: parameters },
  success: {
    description: "Changes, or all of them as lines or as Parquet",
    headers: { "X-Export-Watermark": PAGE_HEADERS["X-Export-Watermark"] },
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

export type ChangeEndpointsDeps = {
  readonly reader: Pick<Reader, "changes" | "parquet">;
  readonly sendPage: SendPage;
  readonly settled: ReadSettled;
  readonly secret: string;
  readonly previousSecret?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};

/** The change feed: an extension of the specification's interface. */
export const createChangeEndpoints = (deps: ChangeEndpointsDeps): readonly Endpoint[] => {
  const { reader, sendPage, settled, now } = deps;
  const signer = createCursorSigner(deps);

  const endpoint = (kind: RecordKind, name: string): Endpoint => {
    const { list } = RECORD_KINDS[kind];

    const write = (client: ApiClient, position: ChangePosition): string => {
      const content = encodeChangePosition(position);
      return signer.sign(content, signedChange(content, { clientId: client.clientId, list }));
    };

    const read = (client: ApiClient, cursor: string): ChangePosition => {
      const scope = { clientId: client.clientId, list };
      const content = signer.open(cursor, (text) => signedChange(text, scope));
      const position = content === undefined ? undefined : decodeChangePosition(content);
      if (position === undefined) throw badRequest(["cursor: does not belong to this request"]);
      if (isExpiredPosition(position, now() * 1000)) throw cursorExpired(DELETIONS_KEPT_DAYS);
      return position;
    };

    const sendOnePage = async (
      { client, signal, ...call }: Call,
      from: ChangePosition,
      pageSize: number,
      { until, headers }: { until: number; headers: Record<string, string> },
    ): Promise<void> => {
      const query = { clientId: client.clientId, kind, after: from, settled: until, pageSize, signal };
      const page = await reader.changes(query);
      const meta = {
        next_cursor: write(client, { ...page.next, begun: from.begun }),
        next_stored_since: formatTimestampZ(page.next.date),
        end_of_stream: page.isLast,
      };
      await sendPage(
        { client, signal, ...call },
        {
          contentType: JSON_TYPE,
          head: '{"data":[',
          records: page.records,
          rows: () => page.rows,
          tail: () => `],"meta":${JSON.stringify(meta)}}`,
          headers,
        },
      );
    };

    const sendLines = async (
      call: Call,
      from: ChangePosition,
      {
        until,
        watermark,
        headers,
      }: { until: number; watermark: string | undefined; headers: Record<string, string> },
      contentType: string,
    ): Promise<void> => {
      const { client } = call;
      let next: ChangePosition = from;
      const behind =
        (after: { date: number; id: string }): OpenStep =>
        async (signal) => {
          const page = await reader.changes({
            clientId: client.clientId,
            kind,
            after,
            settled: until,
            pageSize: STEP,
            separator: "\n",
            signal,
          });
          if (page.isLast) next = { ...page.next, begun: from.begun };
          return {
            bytes: page.rows === 0 ? page.records : endLastLine(page.records),
            next: page.isLast ? null : behind(page.next),
          };
        };
      const lines = await openWindow(behind(from), call.signal);
      const tail = (): string => {
        const trailer = {
          count: lines.count(),
          watermark: watermark ?? null,
          next_cursor: write(client, next),
          next_stored_since: formatTimestampZ(next.date),
          end_of_stream: true,
        };
        return `${JSON.stringify({ trailer })}\n`;
      };
      await sendPage(call, {
        contentType,
        head: "",
        records: lines.records,
        rows: lines.count,
        tail,
        headers,
      });
    };

    const sendFile = async (
      call: Call,
      from: ChangePosition,
      {
        until,
        watermark,
        headers,
      }: { until: number; watermark: string | undefined; headers: Record<string, string> },
    ): Promise<void> => {
      const { client } = call;
      const open = reader.parquet.changes({ clientId: client.clientId, kind, after: from, settled: until });
      const next = from.date >= until ? from : { date: until, id: "", begun: from.begun };
      const facts = {
        watermark,
        next_cursor: write(client, next),
        next_stored_since: formatTimestampZ(next.date),
        end_of_stream: "true",
      };
      await sendParquet(sendPage, call, open, { headers, facts });
    };

    return {
      method: "GET",
      paths: [`${API_PREFIX}/v2/export/changes/${list}`],
      scope: kind === "end_user" ? "end_users" : "export",
      limit: list,
      slot: "page",
      streams: STREAMS,
      description: describe(kind, name),
      serve: async (call) => {
        const { values, problems } = readParameters(parameters, call.request.raw.url ?? "");
        const { cursor, stored_since: since, page_size: pageSize = DEFAULT_PAGE_SIZE } = values;
        if (cursor !== undefined && since !== undefined) {
          problems.push("cursor, stored_since: a reader that has begun goes on with its cursor alone");
        }
        if (problems.length > 0) throw badRequest(problems);
        const from =
          cursor === undefined
            ? { date: clampInstant(since?.micros ?? 0), id: "", begun: now() * 1000 }
            : read(call.client, cursor);
        // Before the records: they hold everything that was stored before.
        const { until, watermark } = await settled(list);
        if (until === undefined) {
          throw new ServiceError("changes_unsettled", "no process has settled changes yet: jobs must run", {
            retryable: true,
          });
        }
        const headers = watermarkHeader(watermark);
        const contentType = streamTypeOf(call.request.raw, STREAMS);
        if (contentType === undefined) await sendOnePage(call, from, pageSize, { until, headers });
        else if (contentType === PARQUET_TYPE) await sendFile(call, from, { until, watermark, headers });
        else await sendLines(call, from, { until, watermark, headers }, contentType);
      },
    };
  };

  return [
    endpoint("conversation", "Conversations"),
    endpoint("message", "Messages"),
    endpoint("end_user", "EndUsers"),
  ];
};
