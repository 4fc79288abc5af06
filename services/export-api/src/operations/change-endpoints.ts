import {
  type ChangePosition,
  decodeChangePosition,
  DELETIONS_KEPT_DAYS,
  encodeChangePosition,
  formatTimestampZ,
  isExpiredPosition,
  RECORD_KINDS,
  type RecordKind,
  signedChange,
} from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import type { ApiClient, Reader } from "@conversation-export/warehouse";
import { badRequest, cursorExpired } from "../http/api-error.ts";
import { API_PREFIX } from "../http/service-address.ts";
import { sendParquet } from "../parquet/send-parquet.ts";
import { createCursorSigner } from "../page/cursor-signer.ts";
import { clampInstant } from "../page/instant-parameter.ts";
import { JSON_TYPE, PARQUET_TYPE, streamTypeOf } from "../page/stream-type.ts";
import { readParameters } from "../page/parameters.ts";
import type { SendPage } from "../page/send-page.ts";
import type { ReadSettled } from "../page/settled.ts";
import { watermarkHeader } from "../page/watermark.ts";
import { openWindow } from "../page/window-stream.ts";
import {
  CHANGE_PARAMETERS,
  CHANGE_STREAMS,
  DEFAULT_PAGE_SIZE,
  describeChanges,
} from "./change-description.ts";
import type { Call, Endpoint } from "./endpoint.ts";

export type ChangeEndpointsDeps = {
  readonly reader: Pick<Reader, "changes" | "lines" | "parquet">;
  readonly sendPage: SendPage;
  readonly settled: ReadSettled;
  readonly secret: string;
  readonly previousSecret?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};

/** Up to where changes are told, and what the answer says of it. */
type Answered = {
  /** Microseconds since the epoch, exclusive. */
  readonly until: number;
  readonly watermark: string | undefined;
  readonly headers: Record<string, string>;
};

/** The cursors of a list of changes: each is good for one client. */
const createChangeCursors = ({ now, ...secrets }: ChangeEndpointsDeps, list: string) => {
  const signer = createCursorSigner(secrets);
  return {
    write: (client: ApiClient, position: ChangePosition): string => {
      const content = encodeChangePosition(position);
      return signer.sign(content, signedChange(content, { clientId: client.clientId, list }));
    },
    /** @throws ApiError of a cursor that is not of this list and client, or too old */
    read: (client: ApiClient, cursor: string): ChangePosition => {
      const scope = { clientId: client.clientId, list };
      const content = signer.open(cursor, (text) => signedChange(text, scope));
      const position = content === undefined ? undefined : decodeChangePosition(content);
      if (position === undefined) throw badRequest(["cursor: does not belong to this request"]);
      if (isExpiredPosition(position, now() * 1000)) throw cursorExpired(DELETIONS_KEPT_DAYS);
      return position;
    },
  };
};

/** The position behind everything that is settled. */
const endOf = (from: ChangePosition, until: number): ChangePosition =>
  from.date >= until ? from : { date: until, id: "", begun: from.begun };

/** The change feed: an extension of the specification's interface. */
export const createChangeEndpoints = (deps: ChangeEndpointsDeps): readonly Endpoint[] => {
  const { reader, sendPage, settled, now } = deps;

  const endpoint = (kind: RecordKind, name: string): Endpoint => {
    const { list } = RECORD_KINDS[kind];
    const { write, read } = createChangeCursors(deps, list);

    const sendOnePage = async (
      call: Call,
      from: ChangePosition,
      pageSize: number,
      { until, headers }: Answered,
    ): Promise<void> => {
      const { client, signal } = call;
      const query = { clientId: client.clientId, kind, after: from, settled: until, pageSize, signal };
      const page = await reader.changes(query);
      let rows = 0;
      await sendPage(call, {
        contentType: JSON_TYPE,
        head: '{"data":[',
        records: page.records,
        rows: () => rows,
        tail: () => {
          const { next, isLast, rows: all } = page.end();
          rows = all;
          const meta = {
            next_cursor: write(client, { ...next, begun: from.begun }),
            next_stored_since: formatTimestampZ(next.date),
            end_of_stream: isLast,
          };
          return `],"meta":${JSON.stringify(meta)}}`;
        },
        headers,
      });
    };

    const sendLines = async (
      call: Call,
      from: ChangePosition,
      { until, watermark, headers }: Answered,
      contentType: string,
    ): Promise<void> => {
      const { client } = call;
      const query = { clientId: client.clientId, kind, after: from, settled: until };
      const lines = await openWindow(reader.lines.changes(query), call);
      const next = endOf(from, until);
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
      { until, watermark, headers }: Answered,
    ): Promise<void> => {
      const { client } = call;
      const open = reader.parquet.changes({ clientId: client.clientId, kind, after: from, settled: until });
      const next = endOf(from, until);
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
      streams: CHANGE_STREAMS,
      description: describeChanges(kind, name),
      serve: async (call) => {
        const { values, problems } = readParameters(CHANGE_PARAMETERS, call.request.raw.url ?? "");
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
          throw new ServiceError(
            "changes_unsettled",
            "the settled instant is unknown: jobs must run, and ClickHouse answer",
            {
              retryable: true,
            },
          );
        }
        const answered = { until, watermark, headers: watermarkHeader(watermark) };
        const contentType = streamTypeOf(call.request.raw, CHANGE_STREAMS);
        if (contentType === undefined) await sendOnePage(call, from, pageSize, answered);
        else if (contentType === PARQUET_TYPE) await sendFile(call, from, answered);
        else await sendLines(call, from, answered, contentType);
      },
    };
  };

  return [
    endpoint("conversation", "Conversations"),
    endpoint("message", "Messages"),
    endpoint("end_user", "EndUsers"),
  ];
};
