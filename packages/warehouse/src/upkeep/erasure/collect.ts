import {
  byList,
  formatTimestampZ,
  KIND_NAMES,
  type ListName,
  PERSON_KINDS,
  RECORD_KINDS,
} from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { WITH_HIDDEN } from "../deletion.ts";
import { BY_ID, BY_SUBJECT } from "./collect-statements.ts";
import {
  all,
  countOf,
  type ErasureRun,
  type ErasureSubject,
  IS_NAME,
  IS_OWN,
  MAX_KEYS,
  OF_ID,
  OF_PERSON,
  ownRequest,
  parametersOf,
  REASON,
  recordKind,
  RUN,
  SUBJECT,
} from "./erasure-keys.ts";
import {
  ADDED_AT,
  FOUND_LATER,
  LOOKED_AT,
  SLIPPED,
  SUPPRESSION_INSERT_SECONDS,
} from "./suppression-store.ts";

export type ErasureBeginning = {
  readonly requests: number;
  /** Also ids that are looked at once more. */
  readonly found: number;
  readonly again: number;
};

export type ErasureCounts = Readonly<Record<ListName, number>>;

export type ErasureCollection = ReturnType<typeof createErasureCollection>;

const IDS = `erasure_keys WHERE phase = 'erased' AND ${OF_ID} AND ${RUN}`;
const UNSUPPRESSED = `(SELECT client_id, toString(kind) AS type, id,
    max(created_before) AS created_before, any(${REASON}) AS reason FROM ${IDS} GROUP BY client_id, type, id) AS f
  GLOBAL LEFT JOIN (SELECT client_id, toString(kind) AS type, value, max(created_before) AS before FROM suppressions
    WHERE ${OF_ID} AND (client_id, value) GLOBAL IN (SELECT client_id, id FROM ${IDS})
    GROUP BY client_id, type, value) AS k ON f.client_id = k.client_id AND f.type = k.type AND f.id = k.value
  WHERE k.before < f.created_before`;

const IS_LOOKED_AT = `request_id = '${LOOKED_AT}'`;
const DUE = `(request_id = '${FOUND_LATER}' OR NOT ${IS_LOOKED_AT} AND ${SLIPPED})`;
const INSERT_FOUND = `INSERT INTO erasure_keys (client_id, phase, kind, id, created_before, request_id)`;
/** What a run has begun to erase is taken over instead. */
const notBegun = (key: string): string => `({names:String} = 'found' OR ${key} GLOBAL NOT IN
  (SELECT client_id, toString(kind), id, created_before FROM erasure_keys
    WHERE phase = 'erased' AND startsWith(request_id, 'found/')))`;
const LOOK_AT = `${INSERT_FOUND}
  SELECT client_id, 'found', toString(kind), value, max(created_before), {request:String}
  FROM suppressions WHERE ${OF_ID} AND (client_id, kind, value) GLOBAL IN
    (SELECT client_id, kind, value FROM suppressions WHERE ${OF_ID} AND ${DUE})
  GROUP BY client_id, kind, value
  HAVING (maxIf(added_at, ${DUE}) > maxIf(added_at, ${IS_LOOKED_AT})
      OR maxIf(created_before, ${DUE}) > maxIf(created_before, ${IS_LOOKED_AT}))
    AND ${notBegun("(client_id, toString(kind), value, max(created_before))")}`;
const FOUND_PERSONS = PERSON_KINDS.map(
  ({ kind, idNames }) => `${INSERT_FOUND}
  SELECT DISTINCT client_id, 'found', '${idNames}', value, created_before, {request:String}
  FROM suppressions WHERE kind = '${kind}' AND ${notBegun(`(client_id, '${idNames}', value, created_before)`)}`,
);

/** What others have begun is all `found` before any of it is `erased`. */
const ADD_OWN = `INSERT INTO erasure_keys (client_id, phase, kind, id, request_id)
  SELECT DISTINCT client_id, 'found', 'run', {run:String}, request_id FROM erasure_keys
  WHERE request_id IN {own:Array(String)} OR ({names:String} = 'erased' AND phase = 'erased' AND ${IS_OWN})`;

const HIDE = `${INSERT_FOUND}
  SELECT client_id, 'erased', kind, id, created_before, request_id FROM erasure_keys
  WHERE phase = 'found' AND ${IS_NAME} AND ${RUN} AND (${IS_OWN} OR (client_id, request_id) GLOBAL IN
    (SELECT client_id, request_id FROM data_subject_requests FINAL WHERE status = 'running'))`;

/** `session`: by `forErasures`. */
export const createErasureCollection = ({ session }: { readonly session: Session }) => {
  const hide = (run: ErasureRun): Promise<void> =>
    session.command("erasure.hide", HIDE, { parameters: parametersOf(run) });

  return {
    hide,
    note: async (run: ErasureRun, subjects: readonly ErasureSubject[]): Promise<void> => {
      if (subjects.length === 0) return;
      // As rows, which no query log contains.
      const ofRequest = ({ clientId, requestId }: ErasureSubject) => ({
        client_id: clientId,
        phase: "found",
        request_id: requestId,
      });
      const names = subjects.map((one) => {
        const [kind = ""] = one.subject.split(":", 1);
        const id = one.subject.slice(kind.length + 1);
        return { ...ofRequest(one), kind, id, created_before: formatTimestampZ(one.createdBefore) };
      });
      const requests = new Map(subjects.map((one) => [`${one.clientId}\0${one.requestId}`, one]));
      const ofRun = [...requests.values()].map((one) => ({ ...ofRequest(one), kind: "run", id: run.id }));
      await session.insert("erasure.note", { table: "erasure_keys", rows: [...ofRun, ...names] });
    },
    /**
     * Adds findings of writers, the last day's suppressions, and what another run began for no request; readers leave
     * it out from then on.
     */
    begin: async (run: ErasureRun): Promise<ErasureBeginning> => {
      const own = [ownRequest(run, "found"), ownRequest(run, "again")];
      const parameters = { ...parametersOf(run), own, request: own[0] };
      for (const statement of [LOOK_AT, ...FOUND_PERSONS, ADD_OWN])
        await session.command("erasure.begin", statement, { parameters });
      if (run.erases) await hide(run);
      const [row] = await session.rows<Record<keyof ErasureBeginning, string>>(
        "erasure.count_begun",
        `SELECT toString(uniqExactIf((client_id, request_id), NOT ${IS_OWN})) AS requests,
          toString(countIf(startsWith(request_id, 'found/'))) AS found,
          toString(countIf(startsWith(request_id, 'again/') OR startsWith(request_id, 'preview/'))) AS again
          FROM erasure_keys WHERE phase = {names:String} AND ${IS_NAME} AND ${RUN}`,
        { parameters },
      );
      return { requests: Number(row?.requests), found: Number(row?.found), again: Number(row?.again) };
    },
    collect: async (run: ErasureRun): Promise<void> => {
      const parameters = parametersOf(run);
      const sql = `SELECT toString(count()) AS rows FROM erasure_keys
        WHERE phase = {names:String} AND ${OF_PERSON} AND ${RUN}`;
      const persons = countOf(await session.rows("erasure.count_subjects", sql, { parameters }));
      for (const { statements, live } of persons === 0 ? BY_ID : [...BY_SUBJECT, ...BY_ID]) {
        const settings = live === true ? {} : WITH_HIDDEN;
        await all(statements, (statement) =>
          session.command("erasure.collect", statement, { parameters, settings }),
        );
      }
    },
    /** Without requests that wait for an operator. */
    count: async (run: ErasureRun): Promise<ErasureCounts> => {
      const counts = KIND_NAMES.map(
        (kind) =>
          `toUInt32(uniqExactIf((client_id, id), kind = '${recordKind(kind)}')) AS ${RECORD_KINDS[kind].list}`,
      );
      const [row] = await session.rows<ErasureCounts>(
        "erasure.count_collected",
        `SELECT ${counts.join(", ")} FROM erasure_keys WHERE phase = {records:String} AND ${RUN}
          AND (client_id, request_id) GLOBAL NOT IN (SELECT client_id, request_id
            FROM data_subject_requests FINAL WHERE status = 'awaiting_approval')`,
        { parameters: parametersOf(run) },
      );
      return byList((list) => row?.[list] ?? 0);
    },
    /** Returns how many ids lacked a suppression. */
    suppressIds: async (run: ErasureRun): Promise<number> => {
      const parameters = parametersOf(run);
      const sql = `SELECT toString(count()) AS rows FROM ${UNSUPPRESSED}`;
      const missing = countOf(await session.rows("erasure.count_unsuppressed", sql, { parameters }));
      if (missing > 0)
        await session.command(
          "erasure.suppress",
          `INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id, added_at)
            SELECT f.client_id, f.type, f.id, toUnixTimestamp64Micro(f.created_before), f.created_before, f.reason,
              ${ADDED_AT}
            FROM ${UNSUPPRESSED}`,
          { parameters, settings: { max_execution_time: SUPPRESSION_INSERT_SECONDS } },
        );
      return missing;
    },
    persons: async (
      run: ErasureRun,
      take: (subjects: readonly ErasureSubject[]) => Promise<void>,
    ): Promise<void> => {
      const chunks = session.chunks<[client: string, subject: string, micros: string, reason: string]>(
        "erasure.persons",
        `SELECT client_id, ${SUBJECT} AS subject, toString(toUnixTimestamp64Micro(max(created_before))), any(${REASON})
          FROM erasure_keys WHERE phase = 'erased' AND ${OF_PERSON} AND ${RUN} GROUP BY client_id, subject`,
        { parameters: parametersOf(run) },
      );
      let subjects: ErasureSubject[] = [];
      for await (const rows of chunks) {
        for (const [clientId, subject, micros, requestId] of rows)
          subjects.push({ clientId, subject, createdBefore: Number(micros), requestId });
        if (subjects.length < MAX_KEYS) continue;
        await take(subjects);
        subjects = [];
      }
      if (subjects.length > 0) await take(subjects);
    },
  };
};
