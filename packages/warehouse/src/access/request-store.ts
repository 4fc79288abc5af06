import { createHmac } from "node:crypto";
import {
  type DataSubject,
  FINISHED_STATUSES,
  namesOf,
  type RequestStatus,
  subjectText,
} from "@conversation-export/domain";
import { deriveKey } from "@conversation-export/runtime";
import type { Session } from "../session/session.ts";
import {
  type DataSubjectRequest,
  insertRequest,
  REQUEST_COLUMNS,
  type StoredRequest,
  toRequest,
  UNFINISHED,
} from "./request-rows.ts";

export type RequestSummary = Pick<
  DataSubjectRequest,
  "requestId" | "type" | "status" | "receivedAt" | "updatedAt"
>;
export type RequestPlace = Pick<DataSubjectRequest, "requestId" | "receivedAt">;

export type RequestUsage = {
  readonly open: number;
  readonly namedToday: number;
};

/** @throws ServiceError with the codes of `WarehouseError`, without personal data */
export type RequestStore = {
  find(clientId: string, requestId: string): Promise<DataSubjectRequest | null>;
  list(clientId: string, after: RequestPlace | null, limit: number): Promise<readonly RequestSummary[]>;
  /** Of any client, for operators; reads all. */
  findAny(requestId: string): Promise<DataSubjectRequest | null>;
  /**
   * Once acknowledged: a new request, or the unfinished one of the last second. `admit` may throw to refuse a new one.
   */
  open(
    clientId: string,
    subject: DataSubject,
    admit?: (usage: RequestUsage) => void,
  ): Promise<DataSubjectRequest>;
  /** Never goes back; `refused` drops the subject. False: unknown. */
  setStatus(clientId: string, requestId: string, status: RequestStatus): Promise<boolean>;
  ping(): Promise<void>;
};

/** Calls for one subject within this time get one request. */
const SAME_CALL_MS = 1_000;

const NOBODY: DataSubject = { email: null, identifiers: [] };

/** Keyed, since ids appear in URLs and logs. */
const digestOf = (secret: string, clientId: string, subject: DataSubject): string =>
  createHmac("sha256", deriveKey(secret, "request ids"))
    .update(JSON.stringify(["data_subject_request", clientId, "ERASURE", subjectText(subject)]))
    .digest("hex")
    .slice(0, 32);

/** Ids grow with time: two that find nothing, seconds apart, make two requests. */
const numberOf = (requestId: string): number => Number(requestId.slice(requestId.indexOf("-") + 1));

/** `now`: ms. `idSecret`: for digests in ids. */
export function createRequestStore(deps: {
  readonly session: Session;
  readonly now: () => number;
  readonly idSecret: string;
}): RequestStore {
  const session = deps.session.with({ timeoutMs: 10_000 });

  const select = (condition: string, parameters: Record<string, string>): Promise<StoredRequest[]> =>
    session.rows(
      "requests.find",
      `SELECT ${REQUEST_COLUMNS} FROM data_subject_requests FINAL WHERE client_id = {client:String} AND ${condition}`,
      { parameters },
    );

  const usageOf = async (clientId: string, at: number): Promise<RequestUsage> => {
    const [row] = await session.rows<{ open: string; today: string }>(
      "requests.usage",
      `SELECT toString(countIf(${UNFINISHED})) AS open,
        toString(sumIf(named, received_at >= toStartOfDay(fromUnixTimestamp64Milli({now:Int64}, 'UTC')))) AS today
        FROM data_subject_requests FINAL WHERE client_id = {client:String}`,
      { parameters: { client: clientId, now: at } },
    );
    return { open: Number(row?.open), namedToday: Number(row?.today) };
  };

  async function find(clientId: string, requestId: string): Promise<DataSubjectRequest | null> {
    const [row] = await select("request_id = {id:String}", { client: clientId, id: requestId });
    return row === undefined ? null : toRequest(clientId, row);
  }

  const withDigest = (clientId: string, digest: string): Promise<StoredRequest[]> =>
    // "." follows "-" in ASCII: ids that begin with the digest and a dash.
    select("request_id >= {from:String} AND request_id < {to:String}", {
      client: clientId,
      from: `${digest}-`,
      to: `${digest}.`,
    });

  return {
    find,
    async list(clientId, after, limit) {
      const behind = `AND (received_at, request_id) < (fromUnixTimestamp64Milli({at:Int64}, 'UTC'), {id:String})`;
      const rows = await session.rows<
        Pick<StoredRequest, "request_id" | "status" | "received_ms" | "updated_ms">
      >(
        "requests.list",
        `SELECT request_id, status, toUnixTimestamp64Milli(received_at) AS received_ms,
          toUnixTimestamp64Milli(updated_at) AS updated_ms
          FROM data_subject_requests FINAL WHERE client_id = {client:String} ${after === null ? "" : behind}
          ORDER BY received_at DESC, request_id DESC LIMIT {limit:UInt32}`,
        {
          parameters: {
            client: clientId,
            limit,
            ...(after !== null && { at: after.receivedAt, id: after.requestId }),
          },
        },
      );
      return rows.map((row) => ({
        requestId: row.request_id,
        type: "ERASURE",
        status: row.status,
        receivedAt: row.received_ms,
        updatedAt: row.updated_ms,
      }));
    },
    async findAny(requestId) {
      const [row] = await session.rows<StoredRequest & { client_id: string }>(
        "requests.find_any",
        `SELECT client_id, ${REQUEST_COLUMNS} FROM data_subject_requests FINAL WHERE request_id = {id:String}`,
        { parameters: { id: requestId } },
      );
      return row === undefined ? null : toRequest(row.client_id, row);
    },
    async open(clientId, subject, admit) {
      const digest = digestOf(deps.idSecret, clientId, subject);
      const arrived = deps.now();
      const rows = await withDigest(clientId, digest);
      const same = rows.find(
        ({ status, received_ms: ms }) => !FINISHED_STATUSES.includes(status) && arrived - ms < SAME_CALL_MS,
      );
      if (same !== undefined) return toRequest(clientId, same);
      admit?.(await usageOf(clientId, arrived));
      const number = Math.max(
        Math.floor(arrived / SAME_CALL_MS),
        ...rows.map((row) => numberOf(row.request_id) + 1),
      );
      const request: DataSubjectRequest = {
        clientId,
        requestId: `${digest}-${number}`,
        type: "ERASURE",
        subject,
        named: namesOf(subject).length,
        status: "received",
        deleted: null,
        receivedAt: arrived,
        updatedAt: arrived,
        hiddenAt: null,
      };
      await insertRequest(session, request);
      return request;
    },
    async setStatus(clientId, requestId, status) {
      const found = await find(clientId, requestId);
      if (found === null) return false;
      const subject = status === "refused" ? NOBODY : found.subject;
      if (found.status !== status)
        await insertRequest(session, { ...found, subject, status, updatedAt: deps.now() });
      return true;
    },
    ping: session.ping,
  };
}
