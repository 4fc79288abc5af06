import { type DataSubject, FINISHED_STATUSES, type RequestStatus } from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../session/session.ts";
import { toWarehouseError } from "../session/warehouse-error.ts";

/** Instants in ms. */
export type DataSubjectRequest = {
  readonly clientId: string;
  readonly requestId: string;
  readonly type: "ERASURE";
  readonly subject: DataSubject;
  /** Number of addresses and ids. */
  readonly named: number;
  readonly status: RequestStatus;
  /** By table; null: unknown. */
  readonly deleted: Readonly<Record<string, number>> | null;
  readonly receivedAt: number;
  readonly updatedAt: number;
  /** Since when readers do not see its records; null: unknown or never. */
  readonly hiddenAt: number | null;
};

export type StoredRequest = {
  request_id: string;
  request_type: string;
  email: string;
  identifiers: string;
  named: number;
  status: RequestStatus;
  receipt: string;
  received_ms: number;
  updated_ms: number;
  hidden_ms: number;
};

export const UNFINISHED = `status NOT IN (${FINISHED_STATUSES.map((status) => `'${status}'`).join()})`;
export const REQUEST_COLUMNS = `request_id, request_type, email, identifiers, named, status, receipt,
  toUnixTimestamp64Milli(received_at) AS received_ms, toUnixTimestamp64Milli(updated_at) AS updated_ms,
  toUnixTimestamp64Milli(hidden_at) AS hidden_ms`;

// rank << 48 | ceiling - ms: ceilings order states that share a rank.
const LAST_MS = 2n ** 48n - 1n;
const PLACES: Readonly<
  Record<RequestStatus | "hidden", { readonly rank: bigint; readonly ceiling: bigint }>
> = {
  received: { rank: 0n, ceiling: LAST_MS },
  queued: { rank: 1n, ceiling: LAST_MS },
  awaiting_approval: { rank: 2n, ceiling: 2n ** 45n },
  approved: { rank: 2n, ceiling: 2n ** 46n },
  refused: { rank: 2n, ceiling: 2n ** 47n },
  // Above `refused`: a run that began cannot be refused.
  running: { rank: 2n, ceiling: LAST_MS },
  // `running`, and readers do not see its records.
  hidden: { rank: 3n, ceiling: 2n ** 45n },
  failed: { rank: 3n, ceiling: LAST_MS },
  completed: { rank: 4n, ceiling: LAST_MS },
};

/** The higher status wins, then the earlier row: repetitions change no instants. */
export const versionOf = (status: RequestStatus | "hidden", ms: number): string => {
  const { rank, ceiling } = PLACES[status];
  return String((rank << 48n) | (ceiling - BigInt(ms)));
};

export const subjectOfRow = (row: Pick<StoredRequest, "email" | "identifiers">): DataSubject => ({
  email: row.email === "" ? null : row.email,
  identifiers: JSON.parse(row.identifiers) as DataSubject["identifiers"],
});

export const toRequest = (clientId: string, row: StoredRequest): DataSubjectRequest => ({
  clientId,
  requestId: row.request_id,
  type: "ERASURE",
  subject: subjectOfRow(row),
  named: row.named,
  status: row.status,
  deleted:
    row.receipt === ""
      ? null
      : Object.fromEntries(
          Object.entries(JSON.parse(row.receipt) as Record<string, string | number>)
            .map(([table, rows]) => [table, Number(rows)] as const)
            .sort(([one], [other]) => (one < other ? -1 : 1)),
        ),
  receivedAt: row.received_ms,
  updatedAt: row.updated_ms,
  hiddenAt: row.hidden_ms === 0 ? null : row.hidden_ms,
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
  receipt: request.deleted === null ? "" : JSON.stringify(request.deleted),
  received_at: new Date(request.receivedAt).toISOString(),
  updated_at: new Date(request.updatedAt).toISOString(),
  hidden_at: new Date(request.hiddenAt ?? 0).toISOString(),
});

/** Resolves once acknowledged. @throws ServiceError with the code of the `WarehouseError`, without personal data */
export async function insertRequest(session: Session, request: DataSubjectRequest): Promise<void> {
  try {
    await session.insert(
      "requests.save",
      { table: "data_subject_requests", rows: [toRow(request)] },
      { settings: { insert_deduplicate: 0 } },
    );
  } catch (error) {
    const { code, message, retryable } = toWarehouseError(error);
    // No cause: its message may quote the row.
    throw new ServiceError(code, message, { retryable });
  }
}
