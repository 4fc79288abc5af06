import { createInspector, type Inspector } from "@conversation-export/warehouse";
import type { ServiceUsers, WarehouseConfig } from "../config.ts";
import { explainStore } from "../connect/connections.ts";
import { credentialsBeside } from "../explain/explain.ts";
import { attempt, type Finding, type Findings, findingsOf } from "./finding.ts";

const AREA = "ClickHouse";
const { ok, problem, skipped } = findingsOf(AREA);

const usersAdvice =
  "docs/operations.md, Users of ClickHouse, and deploy/local/clickhouse/users.xml show the grants it needs";

type Need = { readonly privileges: string; readonly on: string };
type UserNeeds = {
  readonly user: keyof ServiceUsers | "migrator";
  readonly variable: string;
  readonly needs: readonly Need[];
  /** Needed on a cluster in addition, to reach all of its servers. */
  readonly onCluster?: readonly Need[];
  /** Privileges that this user must not have. */
  readonly never: readonly Need[];
};

const ALL_TABLES = "{database}.*";
const RECORDS = "{database}.conversations";
const EVERY_SERVER: Need = { privileges: "REMOTE", on: "*.*" };

/** The privileges that each user must have and must not have. */
export const USERS: readonly UserNeeds[] = [
  {
    user: "migrator",
    variable: "CLICKHOUSE_URL",
    needs: [
      { privileges: "SELECT, INSERT, CREATE TABLE, DROP TABLE, ALTER TABLE", on: ALL_TABLES },
      { privileges: "SELECT", on: "system.parts" },
    ],
    onCluster: [EVERY_SERVER],
    never: [],
  },
  {
    user: "writer",
    variable: "CLICKHOUSE_WRITER_URL",
    needs: [{ privileges: "SELECT, INSERT", on: ALL_TABLES }],
    never: [],
  },
  {
    user: "reader",
    variable: "CLICKHOUSE_READER_URL",
    needs: [{ privileges: "SELECT", on: ALL_TABLES }],
    never: [{ privileges: "INSERT", on: RECORDS }],
  },
  {
    user: "lookup",
    variable: "CLICKHOUSE_LOOKUP_URL",
    needs: ["api_keys", "clients", "campaigns", "watermarks"].map((table) => ({
      privileges: "SELECT",
      on: `{database}.${table}`,
    })),
    never: [
      { privileges: "SELECT", on: RECORDS },
      { privileges: "INSERT", on: "{database}.api_keys" },
    ],
  },
  {
    user: "intake",
    variable: "CLICKHOUSE_INTAKE_URL",
    needs: [{ privileges: "SELECT, INSERT", on: "{database}.data_subject_requests" }],
    never: [
      { privileges: "SELECT", on: RECORDS },
      { privileges: "INSERT", on: RECORDS },
    ],
  },
  {
    user: "jobs",
    variable: "CLICKHOUSE_JOBS_URL",
    needs: [
      {
        privileges: "SELECT, INSERT, ALTER DELETE, ALTER UPDATE, OPTIMIZE, SYSTEM MERGES",
        on: ALL_TABLES,
      },
      { privileges: "SELECT", on: "system.processes" },
      { privileges: "SELECT", on: "system.parts" },
      { privileges: "SELECT", on: "system.mutations" },
    ],
    onCluster: [EVERY_SERVER],
    never: [],
  },
];

const grantFinding = async (
  inspector: Inspector,
  { user, needs: always, onCluster = [], never }: UserNeeds,
  isCluster: boolean,
): Promise<Finding> => {
  const needs = isCluster ? [...always, ...onCluster] : always;
  const name = `user ${user}`;
  const database = "the database";
  const say = ({ privileges, on }: Need) =>
    `${privileges} on ${on === ALL_TABLES ? database : on.replace("{database}.", "")}`;
  const missing = [];
  for (const need of needs) if (!(await inspector.may(need.privileges, need.on))) missing.push(say(need));
  if (missing.length > 0) return problem(name, `lacks ${missing.join("; ")}`, usersAdvice);
  const excess = [];
  for (const need of never) if (await inspector.may(need.privileges, need.on)) excess.push(say(need));
  if (excess.length > 0) return problem(name, `must not have ${excess.join("; ")}`, usersAdvice);
  return ok(name, "has what it needs, and no more that matters");
};

const readonlyFinding = async (inspector: Inspector, name: string): Promise<Finding> => {
  const { readonly = "" } = await inspector.settings(["readonly"]);
  return readonly === "2"
    ? ok(name, "readonly is 2")
    : problem(
        name,
        `readonly is ${readonly}`,
        "give it a profile with readonly = 2: 1 refuses the settings of its queries, 0 lets it write",
      );
};

/** Checks the grants of one user. @param server with its credentials; null when they are not set */
export const userFindings = async (needs: UserNeeds, server: WarehouseConfig | null): Promise<Findings> => {
  const name = `user ${needs.user}`;
  if (server === null) {
    const advice = `give its URL in ${needs.variable}, or ${credentialsBeside(needs.variable)}, to have its grants checked`;
    return [skipped(name, "not looked at", advice)];
  }
  const inspector = createInspector({ ...server, application: "export-ops", topology: server });
  try {
    return await attempt(AREA, name, async () => {
      try {
        const grants = await grantFinding(inspector, needs, server.cluster !== null);
        const onlyReads = needs.user === "reader" || needs.user === "lookup";
        return onlyReads ? [grants, await readonlyFinding(inspector, name)] : [grants];
      } catch (error) {
        throw await explainStore(error, server, needs.variable);
      }
    });
  } finally {
    await inspector.close();
  }
};
