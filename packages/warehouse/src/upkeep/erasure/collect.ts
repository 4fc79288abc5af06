import type { Session } from "../../session/session.ts";
import { WITH_HIDDEN } from "../deletion.ts";
import { BY_ID, BY_SUBJECT } from "./collect-statements.ts";
import {
  all,
  countOf,
  type ErasureSubject,
  insertKeys,
  KEY_COLUMNS,
  KIND,
  LANDED,
  limitsOf,
  recordKind,
  MAX_KEYS,
  RUN,
} from "./erasure-keys.ts";
import { FOUND_LATER, LOOKED_AT, SLIPPED, SUPPRESSION_INSERT_SECONDS } from "./suppression-store.ts";

/** Counts of what a run looks at. */
export type ErasureBeginning = {
  readonly requests: number;
  /** Identifiers in the requests. */
  readonly named: number;
  /** Ids of end users that writers have found. */
  readonly foundEndUsers: number;
  /** Ids of conversations and messages found by writers or looked at once more. */
  readonly ids: number;
};

export type ErasureCounts = {
  readonly conversations: number;
  readonly messages: number;
  readonly endUsers: number;
};

/** Finds everything about the persons of a run. */
export type ErasureCollection = {
  /** Adds persons to a run. */
  note(runId: string, subjects: readonly ErasureSubject[]): Promise<void>;
  /**
   * Begins a run with its persons. Adds the findings of writers, and once more everything suppressed during the
   * last day.
   */
  begin(runId: string): Promise<ErasureBeginning>;
  /**
   * Identifiers and clients that the run was begun with. Fewer than before mean that another run has ended
   * it.
   */
  begunWith(runId: string): Promise<number>;
  /** Collects the keys of all records with any matching version. May be repeated. */
  collect(runId: string): Promise<ErasureCounts>;
  /** Suppresses the collected ids that are not suppressed yet. Returns how many. */
  suppressIds(runId: string): Promise<number>;
  /**
   * Passes the identifiers of the run, including those found through them, to `take`, some at a time, but for
   * those that `noteHashed` was called with.
   */
  unhashed(runId: string, take: (subjects: readonly ErasureSubject[]) => Promise<void>): Promise<void>;
  noteHashed(runId: string, subjects: readonly ErasureSubject[]): Promise<void>;
};

/** SQL for ids of the run without a suppression that reaches up to the run's limit. */
const unsuppressed = (kind: "conversation" | "message"): string => `${limitsOf(KIND[kind])} AS f
  GLOBAL LEFT JOIN (SELECT client_id, value, max(created_before) AS before FROM suppressions
    WHERE kind = '${kind}' GROUP BY client_id, value) AS k ON f.client_id = k.client_id AND f.id = k.value
  WHERE k.before < f.created_before`;

/** INSERT of suppressed ids to look at: those found by writers, or suppressed in the last day. */
const lookedAt = (kind: "conversation" | "message"): string => {
  const due = `(request_id = '${FOUND_LATER}' OR request_id != '${LOOKED_AT}' AND ${SLIPPED})`;
  return `INSERT INTO job_keys ${KEY_COLUMNS}
    SELECT {run:String}, '${KIND[kind]}', client_id, value, max(created_before), any(request_id)
    FROM suppressions WHERE kind = '${kind}' AND (client_id, value) GLOBAL IN
      (SELECT client_id, value FROM suppressions WHERE kind = '${kind}' AND ${due})
    GROUP BY client_id, value
    HAVING maxIf(added_at, ${due}) > maxIf(added_at, request_id = '${LOOKED_AT}')`;
};

/** @param deps.session with the settings of erasures */
export const createErasureCollection = ({ session }: { readonly session: Session }): ErasureCollection => {
  return {
    note: async (runId, subjects) => {
      const keys = subjects.map((one) => ({ ...one, id: one.subject }));
      await insertKeys(session, runId, [
        ...keys.map((key) => ({ ...key, kind: KIND.begun })),
        ...keys.map((key) => ({ ...key, kind: KIND.subject })),
      ]);
    },
    begin: async (runId) => {
      const parameters = { run: runId };
      for (const kind of ["conversation", "message"] as const)
        await session.command("erasure.look_at", lookedAt(kind), { parameters });
      await session.command(
        "erasure.found_later",
        `INSERT INTO job_keys ${KEY_COLUMNS}
          SELECT {run:String}, '${KIND.subject}', client_id, concat('end_user_id:', value), max(created_before), '${FOUND_LATER}'
          FROM suppressions WHERE kind = 'end_user' GROUP BY client_id, value`,
        { parameters },
      );
      const [row] = await session.rows<Record<"requests" | "named" | "found" | "ids", string>>(
        "erasure.count_begun",
        `SELECT toString(uniqExactIf((client_id, target), kind = '${KIND.begun}')) AS requests,
          toString(uniqExactIf((client_id, id), kind = '${KIND.begun}')) AS named,
          toString(countIf(kind = '${KIND.subject}' AND target = '${FOUND_LATER}')) AS found,
          toString(countIf(kind IN ('${KIND.conversation}', '${KIND.message}'))) AS ids
          FROM job_keys WHERE ${RUN}`,
        { parameters },
      );
      return {
        requests: Number(row?.requests),
        named: Number(row?.named),
        foundEndUsers: Number(row?.found),
        ids: Number(row?.ids),
      };
    },
    noteHashed: (runId, subjects) =>
      insertKeys(
        session,
        runId,
        subjects.map((one) => ({ ...one, id: one.subject, kind: KIND.hashed })),
      ),
    begunWith: async (runId) => {
      const sql = `SELECT toString(uniqExact(client_id, id)) AS rows FROM job_keys
        WHERE ${RUN} AND kind = '${KIND.begun}'`;
      return countOf(await session.rows("erasure.begun_with", sql, { parameters: { run: runId } }));
    },
    collect: async (runId) => {
      const parameters = { run: runId };
      const sql = `SELECT toString(count()) AS rows FROM job_keys WHERE ${RUN} AND kind = '${KIND.subject}'`;
      const persons = countOf(await session.rows("erasure.count_subjects", sql, { parameters }));
      for (const statements of persons === 0 ? BY_ID : [...BY_SUBJECT, ...BY_ID]) {
        await all(statements, (statement) =>
          session.command("erasure.collect", statement, { parameters, settings: WITH_HIDDEN }),
        );
      }
      const kinds = LANDED.map(
        (kind) => `toUInt32(uniqExactIf((client_id, id), kind = '${recordKind(kind)}')) AS ${kind}`,
      );
      const [row] = await session.rows<Record<(typeof LANDED)[number], number>>(
        "erasure.count_collected",
        `SELECT ${kinds.join(", ")} FROM job_keys WHERE ${RUN}`,
        { parameters },
      );
      return {
        conversations: row?.conversation ?? 0,
        messages: row?.message ?? 0,
        endUsers: row?.end_user ?? 0,
      };
    },
    suppressIds: async (runId) => {
      const parameters = { run: runId };
      let count = 0;
      for (const kind of ["conversation", "message"] as const) {
        const sql = `SELECT toString(count()) AS rows FROM ${unsuppressed(kind)}`;
        const missing = countOf(await session.rows("erasure.count_unsuppressed", sql, { parameters }));
        if (missing === 0) continue;
        count += missing;
        await session.command(
          "erasure.suppress",
          `INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id)
            SELECT f.client_id, '${kind}', f.id, toUnixTimestamp64Micro(f.created_before), f.created_before, f.request
            FROM ${unsuppressed(kind)}`,
          { parameters, settings: { max_execution_time: SUPPRESSION_INSERT_SECONDS } },
        );
      }
      return count;
    },
    unhashed: async (runId, take) => {
      const chunks = session.chunks<[client: string, id: string, micros: string, request: string]>(
        "erasure.unhashed",
        `SELECT client_id, id, toString(toUnixTimestamp64Micro(created_before)), request
          FROM ${limitsOf(KIND.subject)} WHERE (client_id, id, created_before) GLOBAL NOT IN
            (SELECT client_id, id, date_created FROM job_keys WHERE ${RUN} AND kind = '${KIND.hashed}')`,
        { parameters: { run: runId } },
      );
      let subjects: ErasureSubject[] = [];
      for await (const rows of chunks) {
        for (const [clientId, id, micros, requestId] of rows)
          subjects.push({ clientId, subject: id, createdBefore: Number(micros), requestId });
        if (subjects.length < MAX_KEYS) continue;
        await take(subjects);
        subjects = [];
      }
      if (subjects.length > 0) await take(subjects);
    },
  };
};
