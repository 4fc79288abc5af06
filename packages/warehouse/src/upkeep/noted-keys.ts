import { randomUUID } from "node:crypto";
import {
  DATED_KINDS,
  type EventType,
  formatTimestampZ,
  type Micros,
  RECORD_KINDS,
} from "@conversation-export/domain";
import type { Session, StatementName } from "../session/session.ts";
import { recordNameSql } from "../tables/record-dates.ts";
import { type Alive, createJobKeys, heldRun } from "./job-keys.ts";

/** Kind of the keys of records by their dates of creation. */
export const CARRIED = "carried";
/** Kind of all noted dates of the carried records. */
const DATED = "dated";

/** `date`: of creation, unless another kind than `CARRIED` says otherwise. */
export type NotedKey = {
  readonly kind: string;
  readonly clientId: string;
  readonly id: string;
  readonly date: Micros;
};

/** SQL for a set of columns of the noted keys of a kind. Parameter: run. */
export const ofRun = (kind: string, columns: string): string =>
  `(SELECT ${columns} FROM job_keys WHERE run_id = {run:String} AND kind = '${kind}')`;

/** SQL condition: the row is one of a carried record, under any noted date. */
export const ofDates = (created: string, id: string): string =>
  `(client_id, ${created}, ${id}) GLOBAL IN ${ofRun(DATED, "client_id, date_created, id")}`;

/** Asks a question about the noted keys, which are those of its parameter `run`. */
export type Ask = <Row>(name: StatementName, query: string) => Promise<Row[]>;

/** @throws WarehouseError from every method */
export type NotedKeys = {
  /**
   * Calls `work` while the keys are in `job_keys`, for up to about ten thousand at a time.
   *
   * @param options.type of the carried records, whose dates are then noted as well; null: they are not
   */
  during<T>(
    keys: readonly NotedKey[],
    options: { readonly type: EventType | null; readonly signal: AbortSignal | undefined },
    work: (ask: Ask) => Promise<T>,
  ): Promise<T>;
  /** Removes the keys of runs of dead processes. */
  sweep(alive: Alive): Promise<void>;
};

/** @param deps.prefix of the runs, which `deps.holder`, this process, has in `job_keys` */
export const createNotedKeys = (deps: {
  readonly session: Session;
  readonly prefix: string;
  readonly holder: string;
}): NotedKeys => {
  const { prefix, holder } = deps;
  const session = deps.session.with({ settings: { async_insert: 0 } });
  const jobKeys = createJobKeys({ session });

  return {
    during: async (keys, { type, signal }, work) => {
      const run = heldRun(prefix, holder, randomUUID());
      const rows = keys.map(({ kind, clientId, id, date }) => ({
        run_id: run,
        kind,
        client_id: clientId,
        id,
        date_created: formatTimestampZ(date),
      }));
      const parameters = { run };
      const ask: Ask = async <Row>(name: StatementName, query: string): Promise<Row[]> => {
        const found: Row[] = [];
        for await (const chunk of session.chunks<Row>(name, query, { parameters, signal }))
          found.push(...chunk);
        return found;
      };
      try {
        await session.insert("keys.note", { table: "job_keys", rows }, { signal });
        const kind = DATED_KINDS.find((one) => RECORD_KINDS[one].type === type);
        if (kind !== undefined)
          await session.command(
            "keys.dates",
            `INSERT INTO job_keys (run_id, kind, client_id, id, date_created)
              SELECT {run:String}, '${DATED}', client_id, id, date_created FROM record_dates
              WHERE record GLOBAL IN ${ofRun(CARRIED, recordNameSql("client_id", kind, "id"))}`,
            { parameters, signal },
          );
        return await work(ask);
      } finally {
        // Keys that cannot be removed now are removed when this process has ended.
        await jobKeys.forget(run).catch(() => {});
      }
    },
    sweep: (alive) => jobKeys.forgetDead(prefix, null, alive),
  };
};
