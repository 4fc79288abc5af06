import type { Micros } from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { WITH_HIDDEN } from "../deletion.ts";
import { STORED_SUBJECTS } from "./collect-statements.ts";
import { type ErasureSubject, insertKeys, KEY_COLUMNS, KIND, MAX_KEYS, RUN } from "./erasure-keys.ts";

/** Counts of what a repeated erasure has to look at. */
export type ErasureAgain = {
  /** Clients with suppressions in the run. */
  readonly clients: number;
  /** Suppressed ids of conversations and messages. */
  readonly ids: number;
  /** Suppressed identifiers of persons that stored rows name. */
  readonly persons: number;
};

export type ErasureAgainStore = {
  /**
   * Adds everything erased at or after `since` to the run: the suppressed ids, and those identifiers in
   * stored rows whose hash is suppressed. `hashOf` hashes an identifier in the form of `subjectOf`.
   */
  lookAgain(
    runId: string,
    since: Micros,
    hashOf: (clientId: string, subject: string) => string,
  ): Promise<ErasureAgain>;
};

/** Replaces the identifier in the key of a client whose erased records are all looked at again. */
const AGAIN = "again";

const AT_SINCE = "fromUnixTimestamp64Micro({since:Int64}, 'UTC')";
/** SQL: suppressed since then, or suppressed earlier and deleted since then. */
const ERASED_SINCE = `(added_at >= ${AT_SINCE} OR (client_id, request_id) GLOBAL IN
  (SELECT client_id, request_id FROM data_subject_requests WHERE status = 'completed' AND updated_at >= ${AT_SINCE}))`;

/** Bytes of memory above which grouping spills to disk. */
const MAX_GROUP_BYTES = "1000000000";

/** @param deps.session with the settings of erasures */
export const createErasureAgain = ({ session }: { readonly session: Session }): ErasureAgainStore => ({
  lookAgain: async (runId, since, hashOf) => {
    const parameters = { run: runId, since };
    await session.command(
      "erasure.again_clients",
      `INSERT INTO job_keys ${KEY_COLUMNS}
        SELECT DISTINCT {run:String}, '${KIND.begun}', client_id, '${AGAIN}', now64(6), '' FROM suppressions
        WHERE kind IN ('conversation', 'message', 'subject') AND ${ERASED_SINCE}`,
      { parameters },
    );
    for (const kind of ["conversation", "message"] as const) {
      await session.command(
        "erasure.again_ids",
        `INSERT INTO job_keys ${KEY_COLUMNS}
          SELECT {run:String}, '${KIND[kind]}', client_id, value, max(created_before), any(request_id)
          FROM suppressions WHERE kind = '${kind}' AND ${ERASED_SINCE} GROUP BY client_id, value`,
        { parameters },
      );
    }
    // Counted before the long scan of stored rows, so that the caller notices when the run is ended
    // meanwhile.
    const [row] = await session.rows<{ clients: string; ids: string }>(
      "erasure.count_again",
      `SELECT toString(uniqExactIf(client_id, kind = '${KIND.begun}' AND id = '${AGAIN}')) AS clients,
        toString(uniqExactIf((client_id, kind, id), kind IN ('${KIND.conversation}', '${KIND.message}'))) AS ids
        FROM job_keys WHERE ${RUN}`,
      { parameters },
    );
    const suppressed = new Map<string, Pick<ErasureSubject, "createdBefore" | "requestId">>();
    const hashes = session.chunks<[client: string, value: string, version: string, request: string]>(
      "erasure.again_hashes",
      `SELECT client_id, value, toString(max(version)), any(request_id) FROM suppressions
        WHERE kind = 'subject' AND ${ERASED_SINCE} GROUP BY client_id, value`,
      { parameters },
    );
    for await (const rows of hashes) {
      for (const [clientId, value, version, requestId] of rows)
        suppressed.set(`${clientId}\0${value}`, { createdBefore: Number(version), requestId });
    }
    let persons = 0;
    let keys: (ErasureSubject & { kind: string; id: string })[] = [];
    const keep = async (): Promise<void> => {
      persons += keys.length;
      await insertKeys(session, runId, keys);
      keys = [];
    };
    const named =
      suppressed.size === 0
        ? []
        : session.chunks<[client: string, subject: string]>("erasure.stored_subjects", STORED_SUBJECTS, {
            parameters,
            settings: { ...WITH_HIDDEN, max_bytes_before_external_group_by: MAX_GROUP_BYTES },
          });
    for await (const rows of named) {
      for (const [clientId, subject] of rows) {
        const found = suppressed.get(`${clientId}\0${hashOf(clientId, subject)}`);
        if (found !== undefined) keys.push({ ...found, clientId, subject, kind: KIND.subject, id: subject });
      }
      if (keys.length >= MAX_KEYS) await keep();
    }
    await keep();
    return { clients: Number(row?.clients), ids: Number(row?.ids), persons };
  },
});
