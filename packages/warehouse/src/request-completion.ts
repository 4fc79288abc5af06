import type { ClickHouseClient } from "@clickhouse/client";
import { connect, type WarehouseAccess } from "./connection.ts";
import { createDeletion } from "./deletion.ts";
import type { Topology } from "./migration-template.ts";
import {
  type DataSubjectRequest,
  insertRequest,
  REQUEST_COLUMNS,
  type StoredRequest,
  toRequest,
} from "./request-store.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** What the jobs do with requests of data subjects. Throws `ServiceError` without what a request says. */
export type RequestCompletion = {
  /** All requests that are not finished, of all clients, the oldest first. */
  unfinished(): Promise<DataSubjectRequest[]>;
  /** Notes that they are being worked on. */
  begin(requests: readonly DataSubjectRequest[]): Promise<void>;
  /** Notes that they are done, without whom they were about. */
  complete(requests: readonly DataSubjectRequest[]): Promise<void>;
  /** Removes whom finished requests were about from all rows, so that no active part holds it. */
  scrub(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
};

const NAMES_SOMEBODY = "(email != '' OR identifiers != '[]')";

/** `url`: `http://user:password@host:port/database` of the user for jobs; `now` gives ms since the epoch. */
export function createRequestCompletion(
  deps: WarehouseAccess & {
    readonly topology: Topology;
    readonly now: () => number;
  },
): RequestCompletion {
  const { now } = deps;
  const deletion = createDeletion(deps);
  const client: ClickHouseClient = connect({
    ...deps,
    maxOpenConnections: 4,
    requestTimeoutMs: 60_000,
  });

  async function select<T>(query: string): Promise<T[]> {
    try {
      return await (await client.query({ query, format: "JSONEachRow" })).json<T>();
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  return {
    async unfinished() {
      const rows = await select<StoredRequest & { client_id: string }>(
        `SELECT client_id, ${REQUEST_COLUMNS} FROM data_subject_requests FINAL
        WHERE status NOT IN ('completed', 'failed') ORDER BY data_subject_requests.received_at`,
      );
      return rows.map((row) => toRequest(row.client_id, row));
    },
    async begin(requests) {
      for (const request of requests) {
        if (request.status === "running") continue;
        await insertRequest(client, { ...request, status: "running", updatedAt: now() });
      }
    },
    async complete(requests) {
      for (const request of requests) {
        const subject = { email: null, identifiers: [] };
        await insertRequest(client, { ...request, subject, status: "completed", updatedAt: now() });
      }
    },
    async scrub(signal) {
      const done = "SELECT client_id, request_id FROM data_subject_requests WHERE status = 'completed'";
      const condition = `${NAMES_SOMEBODY} AND (client_id, request_id) IN (${done})`;
      const [row] = await select<{ rows: string }>(
        `SELECT toString(count()) AS rows FROM data_subject_requests WHERE ${condition.replace(" IN ", " GLOBAL IN ")}`,
      );
      if (row?.rows !== "0") await deletion.erase({ table: "data_subject_requests", condition }, signal);
    },
    close: async () => {
      await Promise.all([client.close(), deletion.close()]);
    },
  };
}
