import type { Session } from "../../session/session.ts";
import { createDeletion } from "../deletion.ts";
import {
  type DataSubjectRequest,
  insertRequest,
  REQUEST_COLUMNS,
  type StoredRequest,
  toRequest,
} from "../../access/request-store.ts";

/**
 * The part of the jobs in data-subject requests.
 *
 * @throws ServiceError from `begin` and `complete`; its message contains nothing about the person
 * @throws WarehouseError from `unfinished` and `scrub`
 */
export type RequestCompletion = {
  /** Unfinished requests of all clients, oldest first. */
  unfinished(): Promise<DataSubjectRequest[]>;
  /** Sets the status `running`. */
  begin(requests: readonly DataSubjectRequest[]): Promise<void>;
  /** Sets the status `completed` in new rows without the subject. */
  complete(requests: readonly DataSubjectRequest[]): Promise<void>;
  /** Deletes the older rows of completed requests, which name the subject, from all active parts. */
  scrub(signal: AbortSignal): Promise<void>;
};

const NAMES_SUBJECT = "(email != '' OR identifiers != '[]')";

/**
 * @param deps.session of the user for jobs
 * @param deps.now milliseconds since the epoch
 */
export function createRequestCompletion(deps: {
  readonly session: Session;
  readonly now: () => number;
}): RequestCompletion {
  const { now } = deps;
  const deletion = createDeletion(deps);
  const session = deps.session.with({ timeoutMs: 60_000 });

  return {
    async unfinished() {
      const rows = await session.rows<StoredRequest & { client_id: string }>(
        "requests.unfinished",
        `SELECT client_id, ${REQUEST_COLUMNS} FROM data_subject_requests FINAL
        WHERE status NOT IN ('completed', 'failed') ORDER BY data_subject_requests.received_at`,
      );
      return rows.map((row) => toRequest(row.client_id, row));
    },
    async begin(requests) {
      for (const request of requests) {
        if (request.status === "running") continue;
        await insertRequest(session, { ...request, status: "running", updatedAt: now() });
      }
    },
    async complete(requests) {
      for (const request of requests) {
        const subject = { email: null, identifiers: [] };
        await insertRequest(session, { ...request, subject, status: "completed", updatedAt: now() });
      }
    },
    async scrub(signal) {
      const done = "SELECT client_id, request_id FROM data_subject_requests WHERE status = 'completed'";
      const condition = `${NAMES_SUBJECT} AND (client_id, request_id) IN (${done})`;
      const [row] = await session.rows<{ rows: string }>(
        "requests.count_named",
        `SELECT toString(count()) AS rows FROM data_subject_requests WHERE ${condition.replace(" IN ", " GLOBAL IN ")}`,
      );
      if (row?.rows !== "0") await deletion.erase({ table: "data_subject_requests", condition }, signal);
    },
  };
}
