import { createHmac } from "node:crypto";
import type { ClickHouseClient } from "@clickhouse/client";
import {
  type DataSubject,
  REQUEST_STATUSES,
  type RequestStatus,
  subjectText,
} from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import { connect, type WarehouseAccess } from "./connection.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** One request of a data subject as it is stored. Instants are milliseconds since the epoch. */
export type DataSubjectRequest = {
  readonly clientId: string;
  readonly requestId: string;
  readonly type: "ERASURE";
  readonly subject: DataSubject;
  readonly status: RequestStatus;
  readonly receivedAt: number;
  readonly updatedAt: number;
};

/** Requests of data subjects. Throws `ServiceError` with the codes of `WarehouseError`, without what a request says. */
export type RequestStore = {
  /** null: this client has no such request. */
  find(clientId: string, requestId: string): Promise<DataSubjectRequest | null>;
  /**
   * The request for this subject that is not finished, or a new one in state `received`. Resolves when ClickHouse has
   * acknowledged its row. Calls at once, also of several processes, give one request.
   */
  open(clientId: string, subject: DataSubject): Promise<DataSubjectRequest>;
  /**
   * Notes that a request has come so far. A state that is behind the stored one changes nothing, so a repetition or
   * a late caller does no harm. false: there is no such request.
   */
  setStatus(clientId: string, requestId: string, status: RequestStatus): Promise<boolean>;
  ping(): Promise<void>;
  close(): Promise<void>;
};

export type StoredRequest = {
  request_id: string;
  request_type: string;
  email: string;
  identifiers: string;
  status: RequestStatus;
  received_ms: string | number;
  updated_ms: string | number;
};

export const FINISHED: ReadonlySet<RequestStatus> = new Set(["completed", "failed"]);
export const REQUEST_COLUMNS = `request_id, request_type, email, identifiers, status,
  toUnixTimestamp64Milli(received_at) AS received_ms, toUnixTimestamp64Milli(updated_at) AS updated_ms`;
const LAST_MS = 2n ** 48n - 1n;

/** Later states win; of equal ones the earlier, so that no repetition moves its instants. */
const versionOf = (status: RequestStatus, ms: number): string =>
  String((BigInt(REQUEST_STATUSES.indexOf(status)) << 48n) | (LAST_MS - BigInt(ms)));

/**
 * All requests of one client for one subject: the beginning of their ids. Ids stand in addresses and logs, so they need
 * a secret: else whoever sees one can try out whom it is about.
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
  status: request.status,
  received_at: new Date(request.receivedAt).toISOString(),
  updated_at: new Date(request.updatedAt).toISOString(),
});

/** Resolves when ClickHouse has acknowledged the row. Throws `ServiceError` without what the request says. */
export async function insertRequest(client: ClickHouseClient, request: DataSubjectRequest): Promise<void> {
  try {
    await client.insert({
      table: "data_subject_requests",
      values: [toRow(request)],
      format: "JSONEachRow",
      clickhouse_settings: { async_insert: 0, insert_deduplicate: 0 },
    });
  } catch (error) {
    const { code, message, retryable } = toWarehouseError(error);
    // Without its cause: what ClickHouse says about a row may repeat it.
    throw new ServiceError(code, message, { retryable });
  }
}

/**
 * `url`: `http://user:password@host:port/database`; `now` gives milliseconds since the epoch. `idSecret` goes into the
 * ids of new requests: with another one `open` does not find the former request for a subject.
 */
export function createRequestStore(
  deps: WarehouseAccess & {
    readonly now: () => number;
    readonly idSecret: string;
  },
): RequestStore {
  const { idSecret } = deps;
  const client: ClickHouseClient = connect({
    ...deps,
    maxOpenConnections: 8,
    requestTimeoutMs: 10_000,
  });

  async function select(condition: string, parameters: Record<string, string>): Promise<StoredRequest[]> {
    try {
      const result = await client.query({
        query: `SELECT ${REQUEST_COLUMNS} FROM data_subject_requests FINAL WHERE client_id = {client:String} AND ${condition}`,
        query_params: parameters,
        format: "JSONEachRow",
      });
      return await result.json<StoredRequest>();
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  const insert = (request: DataSubjectRequest): Promise<void> => insertRequest(client, request);

  async function find(clientId: string, requestId: string): Promise<DataSubjectRequest | null> {
    const [row] = await select("request_id = {id:String}", { client: clientId, id: requestId });
    return row === undefined ? null : toRequest(clientId, row);
  }

  return {
    find,
    async open(clientId, subject) {
      const digest = digestOf(idSecret, clientId, subject);
      // The character behind the dash is the point: this range is all ids that begin with the digest and a dash.
      const rows = await select("request_id >= {from:String} AND request_id < {to:String}", {
        client: clientId,
        from: `${digest}-`,
        to: `${digest}.`,
      });
      const open = rows.find(({ status }) => !FINISHED.has(status));
      if (open !== undefined) return toRequest(clientId, open);
      const number = Math.max(0, ...rows.map((row) => numberOf(row.request_id) + 1));
      const at = deps.now();
      const request: DataSubjectRequest = {
        clientId,
        requestId: `${digest}-${number}`,
        type: "ERASURE",
        subject,
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
    async ping() {
      const result = await client.ping({ select: true });
      if (!result.success) throw toWarehouseError(result.error);
    },
    close: () => client.close(),
  };
}
