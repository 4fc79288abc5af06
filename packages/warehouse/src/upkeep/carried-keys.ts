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

export const CARRIED = "carried";
const DATED = "dated";

/** `date`: of creation for `CARRIED`. */
export type CarriedKey = {
  readonly kind: string;
  readonly clientId: string;
  readonly id: string;
  readonly date: Micros;
};

export const ofRun = (kind: string, columns: string): string =>
  `(SELECT ${columns} FROM job_keys WHERE run_id = {run:String} AND kind = '${kind}')`;

/** Rows of carried records, under all their dates. */
export const ofDates = (created: string, id: string): string =>
  `(client_id, ${created}, ${id}) GLOBAL IN ${ofRun(DATED, "client_id, date_created, id")}`;

/** With the parameter `run`. */
export type Ask = <Row>(
  name: StatementName,
  query: string,
  more?: Readonly<Record<string, unknown>>,
) => Promise<Row[]>;

/** @throws WarehouseError from every method */
export const createCarriedKeys = (deps: {
  readonly session: Session;
  readonly prefix: string;
  readonly holder: string;
}) => {
  const { session, prefix, holder } = deps;
  const jobKeys = createJobKeys({ session });

  return {
    /** For up to ten thousand keys; `type`: of carried records whose dates are stored too. */
    during: async <T>(
      keys: readonly CarriedKey[],
      { type, signal }: { readonly type: EventType | null; readonly signal: AbortSignal | undefined },
      work: (ask: Ask) => Promise<T>,
    ): Promise<T> => {
      const run = heldRun(prefix, holder, randomUUID());
      const rows = keys.map(({ kind, clientId, id, date }) => ({
        run_id: run,
        kind,
        client_id: clientId,
        id,
        date_created: formatTimestampZ(date),
      }));
      const parameters = { run };
      const ask: Ask = async <Row>(
        name: StatementName,
        query: string,
        more: Readonly<Record<string, unknown>> = {},
      ): Promise<Row[]> => {
        const found: Row[] = [];
        const options = { parameters: { ...parameters, ...more }, signal };
        for await (const chunk of session.chunks<Row>(name, query, options)) found.push(...chunk);
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
        // `sweep` removes what is left when this process has ended.
        await jobKeys.forget(run).catch(() => {});
      }
    },
    sweep: (alive: Alive): Promise<void> => jobKeys.forgetDead(prefix, null, alive),
  };
};
