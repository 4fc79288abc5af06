import type { Micros } from "@conversation-export/domain";
import { micros } from "../../session/micros-sql.ts";
import type { Session } from "../../session/session.ts";
import { WITH_HIDDEN } from "../deletion.ts";
import { STORED_SUBJECTS } from "./collect-statements.ts";
import type { ErasureCollection } from "./collect.ts";
import {
  countOf,
  type ErasureRun,
  type ErasureSubject,
  MAX_KEYS,
  OF_ID,
  ownRequest,
  parametersOf,
} from "./erasure-keys.ts";

const AT_SINCE = micros("since");
const ERASED_SINCE = `(added_at >= ${AT_SINCE} OR (client_id, request_id) GLOBAL IN
  (SELECT client_id, request_id FROM data_subject_requests WHERE status = 'completed' AND updated_at >= ${AT_SINCE}))`;

/** Above it grouping spills to disk. */
const MAX_GROUP_BYTES = "1000000000";

const IDS = `FROM suppressions WHERE ${OF_ID} AND ${ERASED_SINCE}
  GROUP BY client_id, kind, value`;

/** `session`: by `forErasures`. */
export const createErasureAgain = (deps: {
  readonly session: Session;
  readonly note: ErasureCollection["note"];
}) => {
  const { session, note } = deps;
  return {
    /** From `since` on; `hashOf` takes identifiers in the form of `subjectOf`. */
    lookAgain: async (
      run: ErasureRun,
      since: Micros,
      hashOf: (clientId: string, subject: string) => string,
    ): Promise<{ readonly ids: number; readonly persons: number }> => {
      const requestId = ownRequest(run, "again");
      const parameters = { ...parametersOf(run), since, request: requestId };
      await session.command(
        "erasure.again_clients",
        `INSERT INTO erasure_keys (client_id, phase, kind, id, request_id)
          SELECT DISTINCT client_id, 'found', 'run', {run:String}, {request:String} FROM suppressions
          WHERE (${OF_ID} OR kind = 'subject') AND ${ERASED_SINCE}`,
        { parameters },
      );
      await session.command(
        "erasure.again_ids",
        `INSERT INTO erasure_keys (client_id, phase, kind, id, created_before, request_id)
          SELECT client_id, 'found', toString(kind), value, max(created_before), {request:String} ${IDS}`,
        { parameters },
      );
      const sql = `SELECT toString(count()) AS rows FROM (SELECT 1 ${IDS})`;
      const ids = countOf(await session.rows("erasure.count_again", sql, { parameters }));
      const suppressed = new Map<string, Micros>();
      const hashes = session.chunks<[client: string, value: string, version: string]>(
        "erasure.again_hashes",
        `SELECT client_id, value, toString(max(version)) FROM suppressions
          WHERE kind = 'subject' AND ${ERASED_SINCE} GROUP BY client_id, value`,
        { parameters },
      );
      for await (const rows of hashes)
        for (const [clientId, value, version] of rows)
          suppressed.set(`${clientId}\0${value}`, Number(version));
      let persons = 0;
      let subjects: ErasureSubject[] = [];
      const keep = async (): Promise<void> => {
        persons += subjects.length;
        await note(run, subjects);
        subjects = [];
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
          const createdBefore = suppressed.get(`${clientId}\0${hashOf(clientId, subject)}`);
          if (createdBefore !== undefined) subjects.push({ clientId, subject, createdBefore, requestId });
        }
        if (subjects.length >= MAX_KEYS) await keep();
      }
      await keep();
      return { ids, persons };
    },
  };
};
