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
import { createCursorSigner } from "./cursor-signer.ts";
import { clampInstant } from "../parameters/instant-parameter.ts";
import { PARQUET_TYPE, streamTypeOf } from "../formats/stream-type.ts";
import { readParameters } from "../parameters/parameters.ts";
import type { ListAnswers } from "../formats/list-answers.ts";
import type { ReadSettled } from "../lists/settled.ts";
import { watermarkHeader } from "../lists/watermark.ts";
import {
  CHANGE_PARAMETERS,
  CHANGE_STREAMS,
  DEFAULT_PAGE_SIZE,
  describeChanges,
} from "./change-description.ts";
import type { Endpoint } from "../operations/endpoint.ts";

export type ChangeEndpointsDeps = {
  readonly reader: Pick<Reader, "changes" | "lines" | "parquet">;
  readonly answers: ListAnswers;
  readonly settled: ReadSettled;
  readonly secret: string;
  readonly previousSecret?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
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
  const { reader, answers, settled, now } = deps;

  const endpoint = (kind: RecordKind, name: string): Endpoint => {
    const { list } = RECORD_KINDS[kind];
    const { write, read } = createChangeCursors(deps, list);
    /** How a reader goes on behind a position. */
    const goOn = (client: ApiClient, next: ChangePosition) => ({
      next_cursor: write(client, next),
      next_stored_since: formatTimestampZ(next.date),
    });

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
        const { client, signal } = call;
        const headers = watermarkHeader(watermark);
        const query = { clientId: client.clientId, kind, after: from, settled: until };
        const contentType = streamTypeOf(call.request.raw, CHANGE_STREAMS);
        if (contentType === undefined) {
          return answers.page(call, await reader.changes({ ...query, pageSize, signal }), {
            headers,
            end: (end) => ({
              meta: end && { ...goOn(client, { ...end.next, begun: from.begun }), end_of_stream: end.isLast },
            }),
          });
        }
        const whole = goOn(client, endOf(from, until));
        if (contentType === PARQUET_TYPE) {
          const facts = { watermark, ...whole, end_of_stream: "true" };
          return answers.file(call, reader.parquet.changes(query), { headers, facts });
        }
        const trailer = { watermark: watermark ?? null, ...whole, end_of_stream: true };
        return answers.lines(call, reader.lines.changes(query), { contentType, headers, trailer });
      },
    };
  };

  return [
    endpoint("conversation", "Conversations"),
    endpoint("message", "Messages"),
    endpoint("end_user", "EndUsers"),
  ];
};
