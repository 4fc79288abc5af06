import {
  analyticsDatabase,
  createInspector,
  FIXED_SETTINGS,
  type Grant,
  grantsOf,
  type Inspector,
  onCluster,
  PINNED_SETTINGS,
  type ReplicaCounts,
  type Topology,
  VIEW_LIMITS,
  WAREHOUSE_USERS,
  type WarehouseUser,
} from "@conversation-export/warehouse";
import type { WarehouseConfig } from "../config.ts";
import { explainStore } from "../connect/connections.ts";
import { credentialsBeside } from "../explain/explain.ts";
import { excessGrants, rightsEverywhere } from "./excess-grants.ts";
import { applying, attempt, type Finding, type Findings, findingsOf } from "./finding.ts";
import { limitFaults } from "./limit-faults.ts";
import { profileFindings } from "./profile-findings.ts";
import { quotaFinding } from "./quota-finding.ts";
import { quorumFinding } from "./replica-findings.ts";

const AREA = "ClickHouse";
const { ok, warning, problem, skipped } = findingsOf(AREA);

const usersAdvice =
  "`export-ops grants` prints what it needs, with --exact also what takes the rest away: docs/clickhouse.md, Users";

const migratorAdvice = "docs/clickhouse.md, Users, has the statement that grants it";

const keeperAdvice =
  "ON CLUSTER asks for it: keep other databases off this cluster, see docs/security.md, Who may do what";

type CheckedUser = WarehouseUser | "migrator";

export const USERS: readonly { readonly user: CheckedUser; readonly variable: string }[] = [
  { user: "migrator", variable: "CLICKHOUSE_URL" },
  ...WAREHOUSE_USERS.map((user) => ({ user, variable: `CLICKHOUSE_${user.toUpperCase()}_URL` })),
];

/** For the migrator what `doctor` can ask about. */
export const neededBy = (user: CheckedUser, database: string, topology: Topology): readonly Grant[] => {
  if (user !== "migrator") return grantsOf(user, database, topology);
  const needed = [
    { privileges: ["SELECT", "INSERT", "CREATE TABLE", "DROP TABLE", "ALTER TABLE"], on: `${database}.*` },
    {
      privileges: ["CREATE DATABASE", "CREATE VIEW", "DROP VIEW", "SELECT"],
      on: `${analyticsDatabase(database)}.*`,
    },
    { privileges: ["SELECT"], on: "system.parts" },
  ];
  if (topology.cluster === null) return needed;
  const everywhere = onCluster(topology) === "" ? ["REMOTE"] : ["REMOTE", "CLUSTER"];
  return [...needed, { privileges: everywhere, on: "*.*" }];
};

const grantFindings = async (
  inspector: Inspector,
  user: CheckedUser,
  database: string,
  topology: Topology,
): Promise<Findings> => {
  const name = `user ${user}`;
  const needed = neededBy(user, database, topology);
  const lacking = await Promise.all(
    needed.map(async ({ privileges, on }) => {
      const listed = privileges.join(", ");
      return (await inspector.may(listed, on)) ? [] : [`${listed} on ${on}`];
    }),
  );
  const missing = lacking.flat().join("; ");
  const migrates = user === "migrator";
  const advice = migrates ? migratorAdvice : usersAdvice;
  const excess = migrates ? [] : excessGrants(await inspector.grants(), needed, database);
  const reported = (grave: boolean): string =>
    excess.flatMap((one) => (one.grave === grave ? [one.text] : [])).join("; ");
  const [grave, other] = [reported(true), reported(false)];
  const everywhere = rightsEverywhere(needed).join(", ");
  const onAll = `needs ${everywhere} on all databases, so it could delete rows of keys too`;
  const findings = applying([
    missing !== "" && problem(name, `lacks ${missing}`, advice),
    grave !== "" && problem(name, `must not have ${grave}`, usersAdvice),
    other !== "" && warning(name, `does not need ${other}`, usersAdvice),
    everywhere !== "" && warning(name, onAll, keeperAdvice),
  ]);
  return findings.length === 0
    ? [ok(name, migrates ? "has what it needs" : "has what it needs, and no more")]
    : findings;
};

const readonlyFinding = async (inspector: Inspector, name: string): Promise<Finding> => {
  const { readonly = "" } = await inspector.settings(["readonly"]);
  const advice =
    "give it a profile with readonly = 2: 1 refuses the settings of its queries, 0 lets it write";
  return readonly === "2" ? ok(name, "readonly is 2") : problem(name, `readonly is ${readonly}`, advice);
};

const analystAdvice =
  "`export-ops grants --analyst` prints the statement that sets them; every user who reads the views needs it";

/** Analysts must not see what views leave out. */
const viewFindings = async (inspector: Inspector, name: string): Promise<Findings> => {
  const loose = await inspector.looseSettings(Object.keys(FIXED_SETTINGS));
  const limits = await inspector.settings(Object.keys(VIEW_LIMITS));
  const faults = limitFaults(limits);
  const raisable = await inspector.raisableSettings(Object.keys(VIEW_LIMITS));
  const wrong = applying([
    loose.length > 0 &&
      `may change settings by which a view shows erased and hidden records: ${loose.join(", ")}`,
    ...faults,
    raisable.length > 0 && `may raise its limits by a setting: ${raisable.join(", ")}`,
  ]);
  return [
    ...(loose.length === 0 ? [ok(name, "cannot show what the views leave out by a setting")] : []),
    ...wrong.map((fault) => warning(name, fault, analystAdvice)),
  ];
};

/** Rows must be on all replicas before they are published to readers. */
const quorumFindings = async (
  inspector: Inspector,
  user: string,
  replicas: ReplicaCounts,
): Promise<Findings> => {
  const { insert_quorum: quorum = "0", insert_quorum_parallel: parallel = "1" } = await inspector.settings([
    "insert_quorum",
    "insert_quorum_parallel",
  ]);
  return [quorumFinding(user, replicas, quorum, parallel)];
};

/** `server` null: no credentials; `replicas` null: nothing replicates, or unknown. */
export const userFindings = async (
  { user, variable }: (typeof USERS)[number],
  server: WarehouseConfig | null,
  replicas: ReplicaCounts | null,
): Promise<Findings> => {
  const name = `user ${user}`;
  if (server === null) {
    // There may be no analysts.
    if (user === "analyst") return [];
    const advice = `give its URL in ${variable}, or ${credentialsBeside(variable)}, to have its grants and settings checked`;
    return [skipped(name, "not looked at", advice)];
  }
  const inspector = createInspector({ ...server, application: "export-ops", topology: server });
  const database = decodeURIComponent(new URL(server.url).pathname.slice(1));
  try {
    return await attempt(AREA, name, async () => {
      try {
        const grants = await grantFindings(inspector, user, database, server);
        const onlyReads = user === "reader" || user === "lookup";
        const writes = !onlyReads && user !== "analyst";
        return [
          ...grants,
          ...(onlyReads ? [await readonlyFinding(inspector, name)] : []),
          ...(writes && replicas !== null ? await quorumFindings(inspector, user, replicas) : []),
          ...(user === "analyst"
            ? await viewFindings(inspector, name)
            : profileFindings(name, await inspector.changedSettings(Object.keys(PINNED_SETTINGS)))),
          ...(user === "reader" ? [quotaFinding(await inspector.quotas())] : []),
        ];
      } catch (error) {
        throw await explainStore(error, server, variable);
      }
    });
  } finally {
    await inspector.close();
  }
};
