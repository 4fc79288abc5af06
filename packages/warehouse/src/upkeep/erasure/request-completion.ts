import type { RequestStatus } from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { auditSource } from "../../access/audit-store.ts";
import { createDeletion } from "../deletion.ts";
import { subjectOfRow, UNFINISHED, versionOf } from "../../access/request-rows.ts";
import { countOf, type ErasureRun, IS_RECORD, parametersOf, RUN } from "./erasure-keys.ts";
import { eraseSome } from "./forget.ts";
import type { DueRequest } from "./request-subjects.ts";

export type OpenRequests = {
  readonly count: number;
  readonly awaitingApproval: number;
  readonly overdue: number;
  /** ms since the epoch. */
  readonly oldestReceivedAt: number | null;
};

export type Reach = { readonly requestId: string; readonly records: number };

/** No statement holds anything about a person. @throws WarehouseError from every method */
export type RequestCompletion = {
  /** `overdueBefore`: ms since the epoch. */
  open(overdueBefore: number): Promise<OpenRequests>;
  /** The longest waiting first. */
  waitingClients(): Promise<readonly string[]>;
  /** In no order; of a client: those to hide. */
  due(
    which: { readonly clientId: string } | "running",
    take: (requests: readonly DueRequest[]) => Promise<void>,
  ): Promise<void>;
  /** Hidden or about to be, and not carried out. */
  isRunning(request: {
    readonly clientId: string | null;
    readonly requestId: string | null;
  }): Promise<boolean>;
  /** Requests that no operator has seen, with more than `above` records. */
  reaching(run: ErasureRun, clientId: string, above: number): Promise<readonly Reach[]>;
  hold(clientId: string, requestId: string): Promise<void>;
  /** No operator can refuse these any more. Returns how many requests of the run are `running`. */
  begin(run: ErasureRun): Promise<number>;
  /** Returns how many requests of the run are `running`. */
  noteHidden(run: ErasureRun): Promise<number>;
  /** New rows hold a receipt instead of the subject. */
  complete(run: ErasureRun): Promise<void>;
  /** Deletes older rows of ended requests, which name the subject. */
  scrub(signal: AbortSignal): Promise<void>;
};

const NAMES_SUBJECT = "(email != '' OR identifiers != '[]')";
const UNSCREENED: readonly RequestStatus[] = ["received", "queued"];
const BEFORE_RUNNING: readonly RequestStatus[] = [...UNSCREENED, "approved"];
const NOT_HIDDEN = "hidden_at = toDateTime64(0, 3, 'UTC')";
/** Requests hold up to 64 KB; by default blocks have 65,000 rows. */
const SMALL_BLOCKS = { max_block_size: "64", max_threads: 1 };

/** Rows deleted by table: as many as before the first attempt. */
const RECEIPTS = `WITH (SELECT mapFromArrays(groupArray(request), groupArray(receipt)) FROM
  (SELECT request, toJSONString(mapFromArrays(groupArray(name), groupArray(most))) AS receipt FROM
    (SELECT request_id AS request, id AS name, max(rows) AS most FROM erasure_keys
      WHERE phase = 'deleting' AND kind = 'rows' GROUP BY request_id, id)
    GROUP BY request)) AS receipts`;

const oneOf = (statuses: readonly RequestStatus[]): string =>
  `status IN (${statuses.map((status) => `'${status}'`).join()})`;

/** Also one whose job died before it was hidden. */
const TO_BE_HIDDEN = `(${oneOf(BEFORE_RUNNING)} OR ${oneOf(["running"])} AND ${NOT_HIDDEN})`;

/** `now`: ms since the epoch. */
export function createRequestCompletion(deps: {
  readonly session: Session;
  readonly now: () => number;
}): RequestCompletion {
  const { now } = deps;
  const deletion = createDeletion(deps);
  const session = deps.session.with({ timeoutMs: 300_000 });

  const advance = (
    to: RequestStatus | "hidden",
    condition: string,
    parameters: Readonly<Record<string, unknown>>,
  ): Promise<void> => {
    const ends = to === "completed";
    const status: RequestStatus = to === "hidden" ? "running" : to;
    const at = now();
    return session.command(
      "requests.advance",
      `INSERT INTO data_subject_requests
        (client_id, request_id, version, request_type, email, identifiers, named, status, received_at, updated_at, hidden_at, receipt)
        ${ends ? RECEIPTS : ""} SELECT client_id, request_id, {version:UInt64}, request_type, ${ends ? "'', '[]'" : "email, identifiers"},
          named, '${status}', received_at, fromUnixTimestamp64Milli({at:Int64}, 'UTC'),
          ${to === "hidden" ? "fromUnixTimestamp64Milli({at:Int64}, 'UTC')" : "hidden_at"},
          ${ends ? "if(receipts[request_id] = '', '{}', receipts[request_id])" : "receipt"}
        FROM data_subject_requests FINAL WHERE ${condition}`,
      {
        parameters: { ...parameters, version: versionOf(to, at), at },
        settings: {
          ...SMALL_BLOCKS,
          min_insert_block_size_bytes: "16000000",
          async_insert: 0,
          insert_deduplicate: 0,
        },
      },
    );
  };

  const countRunning = async (run: ErasureRun): Promise<number> => {
    const sql = `SELECT toString(count()) AS rows FROM data_subject_requests FINAL
      WHERE ${oneOf(["running"])} AND ${RUN}`;
    return countOf(await session.rows("requests.count_running", sql, { parameters: parametersOf(run) }));
  };

  const note = (state: "begun" | "done", condition: string, run: ErasureRun): Promise<void> =>
    session.command(
      "requests.note",
      `INSERT INTO audit (run_id, state, actor, source, command, arguments)
        SELECT concat(client_id, ' ', request_id), '${state}', 'jobs', {source:String}, 'erasure',
          toJSONString(map('client_id', client_id, 'request_id', request_id))
        FROM data_subject_requests FINAL WHERE ${condition} AND ${RUN}`,
      { parameters: { ...parametersOf(run), source: auditSource() }, settings: { async_insert: 0 } },
    );

  return {
    async open(overdueBefore) {
      const [row] = await session.rows<Record<"open" | "awaiting" | "overdue" | "oldest", string>>(
        "requests.open",
        `SELECT toString(count()) AS open, toString(countIf(status = 'awaiting_approval')) AS awaiting,
          toString(countIf(received_at < fromUnixTimestamp64Milli({before:Int64}, 'UTC'))) AS overdue,
          toString(toUnixTimestamp64Milli(min(received_at))) AS oldest
          FROM data_subject_requests FINAL WHERE ${UNFINISHED}`,
        { parameters: { before: overdueBefore } },
      );
      const count = Number(row?.open);
      return {
        count,
        awaitingApproval: Number(row?.awaiting),
        overdue: Number(row?.overdue),
        oldestReceivedAt: count === 0 ? null : Number(row?.oldest),
      };
    },
    async waitingClients() {
      const rows = await session.rows<{ client_id: string }>(
        "requests.waiting_clients",
        `SELECT client_id FROM data_subject_requests FINAL WHERE ${TO_BE_HIDDEN}
          GROUP BY client_id ORDER BY min(received_at)`,
      );
      return rows.map((row) => row.client_id);
    },
    async due(which, take) {
      const ofClient = which === "running" ? null : which.clientId;
      const chunks = session.chunks<[string, string, email: string, identifiers: string, ms: string]>(
        "requests.due",
        `SELECT client_id, request_id, email, identifiers, toString(toUnixTimestamp64Milli(received_at))
          FROM data_subject_requests FINAL WHERE ${ofClient === null ? oneOf(["running"]) : `client_id = {client:String} AND ${TO_BE_HIDDEN}`}`,
        { parameters: { client: ofClient ?? "" }, settings: SMALL_BLOCKS },
      );
      for await (const rows of chunks) {
        await take(
          rows.map(([clientId, requestId, email, identifiers, ms]) => ({
            clientId,
            requestId,
            subject: subjectOfRow({ email, identifiers }),
            receivedAt: Number(ms),
          })),
        );
      }
    },
    async isRunning({ clientId, requestId }) {
      const rows = await session.rows(
        "requests.is_running",
        `SELECT 1 FROM data_subject_requests FINAL
          WHERE client_id = {client:String} AND request_id = {id:String} AND ${oneOf(["running"])}`,
        { parameters: { client: clientId ?? "", id: requestId ?? "" } },
      );
      return rows.length > 0;
    },
    async reaching(run, clientId, above) {
      const rows = await session.rows<{ id: string; records: string }>(
        "requests.reaching",
        `SELECT request_id AS id, toString(uniqExact(kind, erasure_keys.id)) AS records FROM erasure_keys
          WHERE client_id = {client:String} AND phase = 'found' AND ${IS_RECORD} AND ${RUN}
            AND request_id GLOBAL IN (SELECT request_id FROM data_subject_requests FINAL
              WHERE client_id = {client:String} AND ${oneOf(UNSCREENED)})
          GROUP BY request_id HAVING uniqExact(kind, erasure_keys.id) > {above:UInt64}`,
        { parameters: { ...parametersOf(run), client: clientId, above } },
      );
      return rows.map(({ id, records }) => ({ requestId: id, records: Number(records) }));
    },
    hold: (clientId, requestId) =>
      advance(
        "awaiting_approval",
        `client_id = {client:String} AND request_id = {id:String} AND ${oneOf(UNSCREENED)}`,
        { client: clientId, id: requestId },
      ),
    async begin(run) {
      await note("begun", oneOf(BEFORE_RUNNING), run);
      await advance("running", `${oneOf(BEFORE_RUNNING)} AND ${RUN}`, parametersOf(run));
      return countRunning(run);
    },
    async noteHidden(run) {
      const isHidden = `(client_id, request_id) GLOBAL IN
        (SELECT DISTINCT client_id, request_id FROM erasure_keys WHERE phase = 'erased' AND ${RUN})`;
      const condition = `${oneOf(["running"])} AND ${NOT_HIDDEN} AND ${isHidden} AND ${RUN}`;
      await advance("hidden", condition, parametersOf(run));
      return countRunning(run);
    },
    async complete(run) {
      const condition = `${oneOf(["running"])} AND NOT (${NOT_HIDDEN})`;
      // Noted first: once they are completed, another run removes their keys.
      await note("done", condition, run);
      await advance("completed", `${condition} AND ${RUN}`, parametersOf(run));
    },
    scrub(signal) {
      const condition = (isIn: string): string => `${NAMES_SUBJECT} AND (client_id, request_id) ${isIn}
        (SELECT client_id, request_id FROM data_subject_requests WHERE ${oneOf(["completed", "refused"])})`;
      return eraseSome({ session, deletion }, { table: "data_subject_requests", condition }, signal);
    },
  };
}
