import { hostname, userInfo } from "node:os";
import type { Session } from "../session/session.ts";
import { toIso } from "./client-store.ts";

export const AUDIT_STATES = ["begun", "done", "failed"] as const;
export type AuditState = (typeof AUDIT_STATES)[number];

export type AuditNote = {
  readonly runId: string;
  readonly state: AuditState;
  readonly actor: string;
  readonly command: string;
  /** Without secrets and persons; after the change findings may be added. */
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly result: string;
};

/** `begun` if its process died. Instants are ISO 8601. */
export type AuditEntry = AuditNote & {
  readonly source: string;
  readonly begunAt: string;
  readonly endedAt: string | null;
};

export type AuditFilter = {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly actor?: string | undefined;
  readonly limit: number;
};

export type LastChange = {
  readonly command: string;
  readonly state: AuditState;
  /** By ClickHouse's clock. */
  readonly ageSeconds: number;
};

/** @throws WarehouseError from every method */
export type AuditStore = {
  /** Resolves once acknowledged. */
  note(notes: readonly AuditNote[]): Promise<void>;
  list(filter: AuditFilter): Promise<AuditEntry[]>;
  /** Within 30 days; at most 200. */
  last(): Promise<LastChange[]>;
};

type StoredEntry = {
  run_id: string;
  state: AuditState;
  actor: string;
  source: string;
  command: string;
  arguments: string;
  result: string;
  begun: string;
  ended: string;
};

export const auditSource = (): string => `${userInfo().username}@${hostname()}`;

export const createAuditStore = ({ session }: { readonly session: Session }): AuditStore => ({
  note: async (notes) => {
    if (notes.length === 0) return;
    const rows = notes.map(({ runId, ...note }) => ({
      ...note,
      run_id: runId,
      source: auditSource(),
      arguments: JSON.stringify(note.arguments),
    }));
    await session.insert("audit.note", { table: "audit", rows });
  },
  list: async ({ since, until, actor, limit }) => {
    const rows = await session.rows<StoredEntry>(
      "audit.list",
      `SELECT run_id, argMax(state, n) AS state, any(actor) AS actor, any(source) AS source, any(command) AS command,
         argMax(arguments, n) AS arguments, argMax(result, n) AS result,
         toString(min(at)) AS begun, toString(max(at)) AS ended
       FROM (SELECT *, toUInt8(state) AS n FROM audit)
       GROUP BY run_id
       HAVING min(at) >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
         AND min(at) < parseDateTime64BestEffort({until:String}, 6, 'UTC')
         AND ({actor:String} = '' OR actor = {actor:String})
       ORDER BY begun DESC LIMIT {limit:UInt32}`,
      {
        parameters: {
          since: since ?? "1970-01-01T00:00:00Z",
          until: until ?? "2106-01-01T00:00:00Z",
          actor: actor ?? "",
          limit,
        },
      },
    );
    return rows.map(({ run_id, begun, ended, ...row }) => ({
      ...row,
      runId: run_id,
      arguments: JSON.parse(row.arguments) as Record<string, unknown>,
      begunAt: toIso(begun),
      endedAt: row.state === "begun" ? null : toIso(ended),
    }));
  },
  last: async () => {
    const rows = await session.rows<Omit<LastChange, "ageSeconds"> & { age: string }>(
      "audit.last",
      `SELECT toString(command) AS command, toString(state) AS state,
         toString(toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli(max(at))) AS age
       FROM audit WHERE at > now() - INTERVAL 30 DAY
       GROUP BY command, state ORDER BY max(at) DESC LIMIT 200`,
    );
    return rows.map(({ age, ...change }) => ({ ...change, ageSeconds: Number(age) / 1000 }));
  },
});
