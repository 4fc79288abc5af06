import { createHmac } from "node:crypto";
import {
  type DataSubject,
  namesOf,
  REQUEST_STATUSES,
  type RequestStatus,
  subjectText,
} from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../session/session.ts";
import { toWarehouseError } from "../session/warehouse-error.ts";

/** A stored data-subject request. Instants are milliseconds since the epoch. */
export type DataSubjectRequest = {
  readonly clientId: string;
  readonly requestId: string;
  readonly type: "ERASURE";
  readonly subject: DataSubject;
  /** Addresses and ids that the request was made with. */
  readonly named: number;
  readonly status: RequestStatus;
  readonly receivedAt: number;
  readonly updatedAt: number;
};

/** What one client has of requests. */
export type RequestUsage = {
  /** Unfinished requests. */
  readonly open: number;
  /** Addresses and ids in the requests of this day, UTC. */
  readonly namedToday: number;
};

/**
 * Data-subject requests.
 *
 * @throws ServiceError with the codes of `WarehouseError`; messages contain nothing about the person
 */
export type RequestStore = {
  /** null: this client has no such request. */
  find(clientId: string, requestId: string): Promise<DataSubjectRequest | null>;
  /**
   * Returns the unfinished request for this subject, or a new one in state `received` once ClickHouse has
   * acknowledged its row. Concurrent calls, also of several processes, lead to one request.
   *
   * @param admit may throw to refuse a new request; requests that come at once are not counted for each other
   */
  open(
    clientId: string,
    subject: DataSubject,
    admit?: (usage: RequestUsage) => void,
  ): Promise<DataSubjectRequest>;
  /**
   * Advances a request to `status`. A status behind the stored one has no effect, so repeated and late calls
   * are harmless. false: there is no such request.
   */
  setStatus(clientId: string, requestId: string, status: RequestStatus): Promise<boolean>;
  ping(): Promise<void>;
};

export type StoredRequest = {
  request_id: string;
  request_type: string;
  email: string;
  identifiers: string;
  named: number;
  status: RequestStatus;
  received_ms: string | number;
  updated_ms: string | number;
};

export const FINISHED: ReadonlySet<RequestStatus> = new Set(["completed", "failed"]);
const UNFINISHED = `status NOT IN (${[...FINISHED].map((status) => `'${status}'`).join()})`;
export const REQUEST_COLUMNS = `request_id, request_type, email, identifiers, named, status,
  toUnixTimestamp64Milli(received_at) AS received_ms, toUnixTimestamp64Milli(updated_at) AS updated_ms`;
const LAST_MS = 2n ** 48n - 1n;

/**
 * Orders rows by status; for equal statuses the earlier row wins, so that a repetition does not change
 * instants.
 */
const versionOf = (status: RequestStatus, ms: number): string =>
  String((BigInt(REQUEST_STATUSES.indexOf(status)) << 48n) | (LAST_MS - BigInt(ms)));

/**
 * Common prefix of the ids of all requests of one client for one subject. Ids appear in URLs and logs, so the
 * digest is keyed: without the secret nobody can guess the person and verify the guess.
 */
const digestOf = (secret: string, clientId: string, subject: DataSubject): string =>
  createHmac("sha256", secret)
    .update(JSON.stringify(["data_subject_request", clientId, "ERASURE", subjectText(subject)]))
    .digest("hex")
    .slice(0, 32);

const numberOf = (requestId: string): number => Number(requestId.slice(requestId.indexOf("-") + 1));

export const toRequest = (clientId: string, row: StoredRequest): DataSubjectRequest => ({
  clientId,
  requestId: row.request_id,
  type: "ERASURE",
  subject: {
    email: row.email === "" ? null : row.email,
    identifiers: JSON.parse(row.identifiers) as DataSubject["identifiers"],
  },
  named: row.named,
  status: row.status,
  receivedAt: Number(row.received_ms),
  updatedAt: Number(row.updated_ms),
});

const toRow = (request: DataSubjectRequest): Record<string, unknown> => ({
  client_id: request.clientId,
  request_id: request.requestId,
  version: versionOf(request.status, request.updatedAt),
  request_type: request.type,
  email: request.subject.email ?? "",
  identifiers: JSON.stringify(request.subject.identifiers),
  named: request.named,
  status: request.status,
  received_at: new Date(request.receivedAt).toISOString(),
  updated_at: new Date(request.updatedAt).toISOString(),
});

/**
 * Resolves when ClickHouse has acknowledged the row.
 *
 * @throws ServiceError with the code of the `WarehouseError`; its message contains nothing about the person
 */
export async function insertRequest(session: Session, request: DataSubjectRequest): Promise<void> {
  try {
    await session.insert(
      "requests.save",
      { table: "data_subject_requests", rows: [toRow(request)] },
      { settings: { async_insert: 0, insert_deduplicate: 0 } },
    );
  } catch (error) {
    const { code, message, retryable } = toWarehouseError(error);
    // No cause: ClickHouse's message may quote the row.
    throw new ServiceError(code, message, { retryable });
  }
}

/**
 * @param deps.now milliseconds since the epoch
 * @param deps.idSecret key of the digests in ids; after a change `open` no longer finds the earlier requests
 * of a subject
 */
export function createRequestStore(deps: {
  readonly session: Session;
  readonly now: () => number;
  readonly idSecret: string;
}): RequestStore {
  const { idSecret } = deps;
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

  const insert = (request: DataSubjectRequest): Promise<void> => insertRequest(session, request);

  async function find(clientId: string, requestId: string): Promise<DataSubjectRequest | null> {
    const [row] = await select("request_id = {id:String}", { client: clientId, id: requestId });
    return row === undefined ? null : toRequest(clientId, row);
  }

  return {
    find,
    async open(clientId, subject, admit) {
      const digest = digestOf(idSecret, clientId, subject);
      // "." follows "-" in ASCII, so this range is exactly the ids that begin with the digest and a dash.
      const rows = await select("request_id >= {from:String} AND request_id < {to:String}", {
        client: clientId,
        from: `${digest}-`,
        to: `${digest}.`,
      });
      const open = rows.find(({ status }) => !FINISHED.has(status));
      if (open !== undefined) return toRequest(clientId, open);
      const at = deps.now();
      admit?.(await usageOf(clientId, at));
      const number = Math.max(0, ...rows.map((row) => numberOf(row.request_id) + 1));
      const request: DataSubjectRequest = {
        clientId,
        requestId: `${digest}-${number}`,
        type: "ERASURE",
        subject,
        named: namesOf(subject).length,
        status: "received",
        receivedAt: at,
        updatedAt: at,
      };
      await insert(request);
      return request;
    },
    async setStatus(clientId, requestId, status) {
      const found = await find(clientId, requestId);
      if (found === null) return false;
      if (found.status !== status) await insert({ ...found, status, updatedAt: deps.now() });
      return true;
    },
    ping: session.ping,
  };
}
