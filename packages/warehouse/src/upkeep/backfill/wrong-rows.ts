import { setTimeout as sleep } from "node:timers/promises";
import {
  formatTimestampZ,
  READABLE_FIRST,
  RECORD_TABLES,
  type RecordTable,
  type RowKey,
  TABLE_FACTS,
} from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import { noteDeleted, type RunUpload } from "../../changes/deletion-entries.ts";
import type { Session } from "../../session/session.ts";
import { createDeletion } from "../deletion.ts";
import { deletionsUnderWay } from "../deletions-under-way.ts";
import { type Alive, createJobKeys, heldRun, KEYS_ARE_KEPT } from "../job-keys.ts";

export type WrongRow = { readonly clientId: string; readonly id: string; readonly row: RowKey };

/** A dead process's deletion goes on, and only removes what is wrong. @throws WarehouseError */
export type WrongRows = {
  /** Waits for anyone's. @throws ServiceError `deletion_under_way` (retryable), after 10 minutes */
  untilNoDeletion(signal: AbortSignal): Promise<void>;
  begin(run: string, signal: AbortSignal): Promise<string>;
  note(name: string, wrong: readonly WrongRow[], signal: AbortSignal): Promise<void>;
  /** Resolves when no query sees the noted rows. @throws ServiceError `keys_lost` (retryable) */
  erase(name: string, signal: AbortSignal): Promise<void>;
  /** Publishes the noted records, and removes the keys. */
  end(name: string, signal: AbortSignal): Promise<void>;
  /** Other attempts at runs that begin so delete nothing from now on. */
  endOthers(run: string, signal: AbortSignal): Promise<void>;
  /** Ends what dead processes and ended attempts noted. @throws ServiceError `deletion_under_way` (retryable) */
  sweep(alive: Alive, signal?: AbortSignal): Promise<void>;
};

export const BACKFILL_RUN = "backfill ";
/** With more, one statement deletes from the whole table. */
const MAX_PARTITIONS = 12;
const WRONG_RUN = "wrong-";
const KEYS_IN_INSERT = 50_000;
const ASK_EVERY_MS = 500;
const DEADLINE_MS = 600_000;

/** An entry of the update index shows nothing by itself. */
const PUBLISHED = RECORD_TABLES.map((table) => TABLE_FACTS[table]).filter(
  ({ keyDate, created }) => keyDate === null || keyDate === created,
);
const PUBLISHED_NAMES = PUBLISHED.map(({ name }) => `'${name}'`).join();
const KIND_OF_TABLE = `transform(k.kind, [${PUBLISHED_NAMES}], [${PUBLISHED.map(({ kind }) => `'${kind}'`).join()}])`;

const removalCondition = (table: RecordTable, keys: string): string => {
  const { id, keyDate: date } = TABLE_FACTS[table];
  const isHandoff = table === "handoffs";
  const columns = ["client_id", ...(date === null ? [] : [date]), id];
  const noted = ["client_id", ...(date === null ? [] : ["date_created"]), "id"];
  if (isHandoff) {
    columns.push("target", "toUInt8(target_kind)");
    noted.push("target", "target_kind");
  }
  columns.push("version");
  noted.push(isHandoff ? "version" : "toUInt128(version)");
  return `(${columns.join(", ")}) IN
    (SELECT ${noted.join(", ")} FROM ${keys} WHERE run_id = {run:String} AND kind = {table:String})
    AND ${KEYS_ARE_KEPT}`;
};

export const createWrongRows = (deps: {
  readonly session: Session;
  readonly runUpload: RunUpload;
  readonly holder: string;
}): WrongRows => {
  const { runUpload, holder } = deps;
  const session = deps.session.with({ timeoutMs: 3_600_000 });
  const deletion = createDeletion(deps);
  const { local } = session.names;
  const keys = createJobKeys({ session });
  const inUse = new Set<string>();

  /** `undefined`: the whole table. */
  const partitionsOf = async (
    run: string,
    table: RecordTable,
    signal: AbortSignal,
  ): Promise<readonly (string | undefined)[]> => {
    const found = await session.rows<{ month: number }>(
      "replace.partitions",
      `SELECT DISTINCT toYYYYMM(date_created) AS month FROM job_keys
        WHERE run_id = {run:String} AND kind = {table:String} LIMIT ${MAX_PARTITIONS + 1}`,
      { parameters: { run, table }, signal },
    );
    if (found.length === 0) return [];
    if (TABLE_FACTS[table].keyDate === null || found.length > MAX_PARTITIONS) return [undefined];
    return found.map(({ month }) => String(month));
  };

  const isDeleting = async (signal?: AbortSignal): Promise<boolean> =>
    (await deletionsUnderWay(session, RECORD_TABLES, { signal })).length > 0;
  const underWay = (): ServiceError =>
    new ServiceError("deletion_under_way", "ClickHouse deletes other rows", { retryable: true });
  const untilNoDeletion = async (signal: AbortSignal): Promise<void> => {
    const until = performance.now() + DEADLINE_MS;
    while (await isDeleting(signal)) {
      if (performance.now() > until) throw underWay();
      await sleep(ASK_EVERY_MS, undefined, { signal });
    }
  };

  const end = async (run: string, signal?: AbortSignal): Promise<void> => {
    const source = `SELECT client_id, ${KIND_OF_TABLE} AS kind, id, date_created FROM job_keys AS k
      WHERE run_id = {run:String} AND k.kind IN (${PUBLISHED_NAMES})`;
    await noteDeleted(
      { session, runUpload },
      { name: "replace.publish", source, parameters: { run }, signal },
    );
    // Another attempt may be about to delete by these keys.
    signal?.throwIfAborted();
    await keys.forget(run);
    inUse.delete(run);
  };
  /** Rows go before records are published: else readers get the rows, and hear of nothing later. */
  const endOther = async (
    name: string,
    untilQuiet: () => Promise<void>,
    signal?: AbortSignal,
  ): Promise<void> => {
    // With a second begin the keys count as removed.
    await keys.begin(name, signal);
    await untilQuiet();
    await end(name, signal);
  };

  return {
    untilNoDeletion,
    begin: async (run, signal) => {
      const name = heldRun(WRONG_RUN, holder, run);
      inUse.add(name);
      await keys.begin(name, signal);
      return name;
    },
    async note(run, wrong, signal) {
      for (let at = 0; at < wrong.length; at += KEYS_IN_INSERT) {
        const rows = wrong.slice(at, at + KEYS_IN_INSERT).map(({ clientId, id, row }) => ({
          run_id: run,
          kind: row.table,
          client_id: clientId,
          id,
          date_created: formatTimestampZ(row.date),
          target: row.target,
          target_kind: row.targetKind,
          version: String(row.version),
        }));
        await session.insert("replace.note", { table: "job_keys", rows }, { signal });
      }
    },
    async erase(run, signal) {
      for (const { name: table } of READABLE_FIRST) {
        for (const partition of await partitionsOf(run, table, signal)) {
          signal.throwIfAborted();
          const condition = removalCondition(table, local("job_keys"));
          await deletion.mask({ table, condition, parameters: { run, table }, partition }, signal);
        }
      }
      await keys.assertKept(run);
    },
    end,
    endOthers: async (run, signal) => {
      const isOfRun = (name: string): boolean => name.slice(name.indexOf("/") + 1).startsWith(run);
      for (const name of (await keys.runs(WRONG_RUN)).filter(isOfRun)) {
        inUse.delete(name);
        await endOther(name, () => untilNoDeletion(signal), signal);
      }
    },
    sweep: async (alive, signal) => {
      const over = (await keys.dead(WRONG_RUN, holder, alive)).filter((name) => !inUse.has(name));
      for (const name of over)
        await endOther(
          name,
          async () => {
            if (await isDeleting(signal)) throw underWay();
          },
          signal,
        );
    },
  };
};
