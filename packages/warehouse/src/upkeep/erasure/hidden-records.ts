import type { Session } from "../../session/session.ts";
import { UNFINISHED } from "../../access/request-rows.ts";
import type { Deletion } from "../deletion.ts";
import { FOUND_LATER, LOOKED_AT } from "./suppression-store.ts";
import { countOf, KEY_COLUMNS, KIND, RUN } from "./erasure-keys.ts";

/** What readers leave out because open requests are about it. */
export type HiddenRecords = {
  /** Hides the persons of a run, and the conversations and messages that it has collected. */
  hide(runId: string): Promise<void>;
  /** Adds to a run what is hidden for its requests: the rows that led to it may already be deleted. */
  takeHidden(runId: string): Promise<void>;
  /** Removes what is hidden for requests that have ended. */
  unhide(signal: AbortSignal): Promise<void>;
};

/** A person is hidden by the type of an identifier and its value: `<type>:<value>` in the keys of a run. */
const VALUE = "substring(id, position(id, ':') + 1)";

/**
 * @param deps.session with the settings of erasures
 * @param deps.deletion of the user for jobs
 */
export const createHiddenRecords = (deps: {
  readonly session: Session;
  readonly deletion: Pick<Deletion, "erase">;
}): HiddenRecords => {
  const { session, deletion } = deps;
  return {
    hide: (runId) =>
      session.command(
        "erasure.hide",
        `INSERT INTO hidden_records (client_id, kind, value, created_before, request_id)
          SELECT DISTINCT client_id,
            transform(toString(kind), ['${KIND.conversation}', '${KIND.message}'], ['conversation', 'message'],
              substringIndex(id, ':', 1)) AS hidden,
            if(hidden IN ('conversation', 'message'), id, ${VALUE}), date_created, target
          FROM job_keys WHERE ${RUN} AND kind IN ('${KIND.subject}', '${KIND.conversation}', '${KIND.message}')`,
        { parameters: { run: runId } },
      ),
    takeHidden: (runId) =>
      session.command(
        "erasure.take_hidden",
        `INSERT INTO job_keys ${KEY_COLUMNS}
          SELECT {run:String},
            transform(toString(kind), ['conversation', 'message'], ['${KIND.conversation}', '${KIND.message}'], '${KIND.subject}'),
            client_id, if(kind IN ('conversation', 'message'), value, concat(kind, ':', value)), created_before, request_id
          FROM hidden_records WHERE (client_id, request_id) GLOBAL IN
            (SELECT client_id, target FROM job_keys WHERE ${RUN} AND kind = '${KIND.begun}')`,
        { parameters: { run: runId } },
      ),
    unhide: async (signal) => {
      // A replica that does not know a request yet keeps what that hides.
      const condition = `(request_id IN ('${FOUND_LATER}', '${LOOKED_AT}') OR (client_id, request_id) IN (SELECT client_id, request_id
        FROM data_subject_requests FINAL WHERE NOT (${UNFINISHED})))`;
      const sql = `SELECT toString(count()) AS rows FROM hidden_records WHERE ${condition.replace("IN (SELECT", "GLOBAL IN (SELECT")}`;
      if (countOf(await session.rows("erasure.count_hidden", sql)) > 0)
        await deletion.erase({ table: "hidden_records", condition }, signal);
    },
  };
};
