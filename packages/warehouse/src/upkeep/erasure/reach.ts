import type { Session } from "../../session/session.ts";
import { KEY_COLUMNS, KIND, LANDED, recordKind, RUN } from "./erasure-keys.ts";

/** How much of a client's records a run has collected. */
export type ErasureReach = {
  /** Clients of whom the run has collected the keys of more than `above` records. */
  reached(
    runId: string,
    above: number,
  ): Promise<readonly { readonly clientId: string; readonly records: number }[]>;
  /** Stored records of a client, to within a few per cent. */
  storedRecords(clientId: string): Promise<number>;
  /** Begins the run `probeId` with the persons of some requests of a run. */
  probe(runId: string, probeId: string, clientId: string, requestIds: readonly string[]): Promise<void>;
};

/** @param deps.session with the settings of erasures */
export const createErasureReach = ({ session }: { readonly session: Session }): ErasureReach => ({
  reached: async (runId, above) => {
    const kinds = LANDED.map((kind) => `'${recordKind(kind)}'`).join();
    const rows = await session.rows<{ client_id: string; records: string }>(
      "erasure.reached",
      `SELECT client_id, toString(uniqExact(kind, id)) AS records FROM job_keys
        WHERE ${RUN} AND kind IN (${kinds}) GROUP BY client_id HAVING uniqExact(kind, id) > {above:UInt64}`,
      { parameters: { run: runId, above } },
    );
    return rows.map((row) => ({ clientId: row.client_id, records: Number(row.records) }));
  },
  storedRecords: async (clientId) => {
    const count = (table: string, id: string): string =>
      `(SELECT uniq(${id}) FROM ${table} WHERE client_id = {client:String})`;
    const [row] = await session.rows<{ records: string }>(
      "erasure.stored_records",
      `SELECT toString(${count("conversations", "conversation_id")} + ${count("messages", "message_id")}
        + ${count("end_users", "end_user_id")}) AS records`,
      { parameters: { client: clientId } },
    );
    return Number(row?.records);
  },
  probe: (runId, probeId, clientId, requestIds) =>
    session.command(
      "erasure.probe",
      `INSERT INTO job_keys ${KEY_COLUMNS}
        SELECT {probe:String}, arrayJoin(['${KIND.begun}', '${KIND.subject}']), client_id, id, date_created, target
        FROM job_keys WHERE ${RUN} AND kind = '${KIND.begun}' AND client_id = {client:String}
          AND target IN {requests:Array(String)}`,
      { parameters: { run: runId, probe: probeId, client: clientId, requests: requestIds } },
    ),
});
