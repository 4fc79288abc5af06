import { READABLE_FIRST } from "@conversation-export/domain";
import { ANALYTICS_VIEWS, analyticsDatabase } from "../analytics/views.ts";
import { onCluster, type Topology } from "../schema/migration-template.ts";
import { WITH_PROJECTION } from "../upkeep/deletion.ts";

export const SERVICE_USERS = ["writer", "reader", "lookup", "intake", "jobs"] as const;
export const WAREHOUSE_USERS = [...SERVICE_USERS, "analyst"] as const;
export type WarehouseUser = (typeof WAREHOUSE_USERS)[number];

/** `on`: such as `conversation_export.messages`, or `*.*`. */
export type Grant = { readonly privileges: readonly string[]; readonly on: string };

type Rights = {
  readonly tables: Readonly<Record<string, readonly string[]>>;
  readonly system?: readonly string[];
  readonly views?: readonly string[];
  readonly behindViews?: readonly string[];
};

const RECORDS = READABLE_FIRST.map(({ name }) => name);
const OF_RECORDS = ["record_dates", "changes"] as const;

/** ClickHouse 25.8 asks for it to delete rows lightly. */
const HIDE = "ALTER UPDATE(_row_exists)";

/** Other tables are closed; the migrating user may do everything. */
const RIGHTS: Readonly<Record<WarehouseUser, Rights>> = {
  writer: {
    tables: {
      SELECT: ["clients"],
      INSERT: [...RECORDS, ...OF_RECORDS, "landing", "landing_gaps", "unregistered_clients"],
      "SELECT, INSERT": ["suppressions", "watermarks", "coordination"],
    },
  },
  reader: {
    tables: { SELECT: [...RECORDS, ...OF_RECORDS, "erasure_keys", "moved_dates", "watermarks"] },
  },
  lookup: { tables: { SELECT: ["clients", "api_keys", "campaigns", "watermarks"] } },
  intake: { tables: { "SELECT, INSERT": ["data_subject_requests"] } },
  jobs: {
    tables: {
      SELECT: ["clients", "landing_gaps"],
      INSERT: ["unregistered_clients"],
      "SELECT, INSERT": [
        "audit",
        "watermarks",
        "coordination",
        "moved_dates",
        "upload_windows",
        "replayed_dead_letters",
        "reconciled",
      ],
      "SELECT, INSERT, ALTER DELETE": [
        "data_subject_requests",
        "suppressions",
        "job_keys",
        "erasure_keys",
        "backfill_rows",
      ],
      "SELECT, INSERT, ALTER DELETE, OPTIMIZE": [...RECORDS, ...OF_RECORDS, "landing"],
      [HIDE]: RECORDS.filter((table) => !WITH_PROJECTION.has(table)),
    },
    system: ["disks", "mutations", "parts", "processes"],
  },
  analyst: {
    tables: {},
    views: ANALYTICS_VIEWS.map(({ name }) => name),
    behindViews: [
      ...RECORDS.filter((table) => table !== "conversation_updates"),
      ...OF_RECORDS,
      "erasure_keys",
      "moved_dates",
      "watermarks",
    ],
  },
};

/** Jobs reads all servers' system tables and changes all servers by one statement. */
const jobsOnCluster = (topology: Topology): Grant[] => {
  if (topology.cluster === null) return [];
  const remote = { privileges: ["REMOTE"], on: "*.*" };
  if (onCluster(topology) === "") return [remote];
  // Servers may have other default databases, so ClickHouse asks for all.
  return [remote, { privileges: ["CLUSTER", "ALTER DELETE", "OPTIMIZE"], on: "*.*" }];
};

/** ClickHouse 25.8 asks for it when rows come by `input()`. */
const TAKE_ROWS: Grant = { privileges: ["CREATE TEMPORARY TABLE"], on: "*.*" };
const INSERTS_RECORDS: ReadonlySet<WarehouseUser> = new Set(["writer", "jobs"]);

/** What a user needs, and at most may have. */
export const grantsOf = (user: WarehouseUser, database: string, topology: Topology): Grant[] => {
  const { tables, system = [], views = [], behindViews = [] } = RIGHTS[user];
  const names = (table: string): string[] =>
    topology.cluster === null ? [table] : [table, `${table}_local`];
  const ofTables = Object.entries(tables).flatMap(([privileges, named]) =>
    named.flatMap(names).map((table) => ({ privileges: privileges.split(", "), on: `${database}.${table}` })),
  );
  const ofSystem = system.map((table) => ({ privileges: ["SELECT"], on: `system.${table}` }));
  const ofViews = views.map((view) => ({
    privileges: ["SELECT"],
    on: `${analyticsDatabase(database)}.${view}`,
  }));
  // A distributed table asks other servers as the view's reader, not as its definer.
  const ofLocals = topology.cluster === null ? [] : behindViews;
  const ofRows = ofLocals.map((table) => ({ privileges: ["SELECT"], on: `${database}.${table}_local` }));
  return [
    ...ofTables,
    ...ofSystem,
    ...ofViews,
    ...ofRows,
    ...(INSERTS_RECORDS.has(user) ? [TAKE_ROWS] : []),
    ...(user === "jobs" ? jobsOnCluster(topology) : []),
  ];
};
