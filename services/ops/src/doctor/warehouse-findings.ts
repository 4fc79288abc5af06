import { createSubjectHash } from "@conversation-export/suppression";
import {
  createInspector,
  createWatermarkReader,
  type Inspector,
  LIST_NAMES,
} from "@conversation-export/warehouse";
import type { ServiceUsers, WarehouseConfig } from "../config.ts";
import { explainStore, requireClickhouse, withStore } from "../connections.ts";
import { credentialsBeside } from "../explain.ts";
import { attempt, type Finding, type Findings, findingsOf } from "./finding.ts";

const AREA = "ClickHouse";
const { ok, warning, problem, skipped } = findingsOf(AREA);

/** The version that this software is tested with. */
const TESTED_VERSION = [26, 7] as const;
/** Watermarks that lie further ahead are not stored, and upload times would lie. */
const MAX_CLOCK_DIFFERENCE_MS = 1_000;
/** Above the idle time of export-api, whose pages wait for their readers. */
const MIN_SEND_TIMEOUT_S = 60;
const MIN_FREE_SHARE = 0.15;
const MANY_PARTS = 300;

const usersAdvice =
  "docs/operations.md, Users of ClickHouse, and deploy/local/clickhouse/users.xml show what it needs";

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;

const versionFinding = (version: string, host: string): Finding => {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [testedMajor, testedMinor] = TESTED_VERSION;
  const older = major < testedMajor || (major === testedMajor && minor < testedMinor);
  const found = `${version} at ${host}`;
  return older
    ? warning(
        "server",
        found,
        `versions before ${TESTED_VERSION.join(".")} are not tested: update ClickHouse`,
      )
    : ok("server", found);
};

const clockFinding = (aheadMs: number, uncertainMs: number): Finding => {
  const certainly = Math.max(0, Math.abs(aheadMs) - uncertainMs);
  const found = `${(Math.abs(aheadMs) / 1000).toFixed(1)} s ${aheadMs < 0 ? "behind" : "ahead of"} this machine`;
  return certainly > MAX_CLOCK_DIFFERENCE_MS
    ? problem("clock", found, "let NTP set the clocks: watermarks and upload times rest on them")
    : ok("clock", found);
};

const schemaFinding = async (inspector: Inspector): Promise<Finding> => {
  const states = await inspector.schema();
  const names = (state: string) => states.filter((one) => one.state === state).map(({ name }) => name);
  const [changed, pending, later] = [names("changed"), names("pending"), names("later")];
  if (changed.length > 0) {
    return problem(
      "schema",
      `not the migrations that were applied: ${changed.join(", ")}`,
      "run the version of this software that the database was made with, or a newer one",
    );
  }
  if (pending.length > 0) {
    return problem("schema", `not applied: ${pending.join(", ")}`, "run `export-ops migrate`");
  }
  if (later.length > 0) {
    return warning(
      "schema",
      `of a newer version: ${later.join(", ")}`,
      "update this installation, so that all processes run the same version",
    );
  }
  return ok("schema", `${states.length} migrations, all applied`);
};

const diskFindings = async (inspector: Inspector): Promise<Findings> =>
  (await inspector.disks()).map(({ name, freeBytes, totalBytes }) => {
    const found = `${gigabytes(freeBytes)} of ${gigabytes(totalBytes)} free`;
    return freeBytes / totalBytes < MIN_FREE_SHARE
      ? warning(
          `disk ${name}`,
          found,
          "make room: merges and erasures write parts anew before the old ones go",
        )
      : ok(`disk ${name}`, found);
  });

const mutationFindings = async (inspector: Inspector): Promise<Findings> => {
  const stuck = await inspector.stuckMutations();
  if (stuck.length === 0) return [ok("mutations", "none is stuck")];
  return stuck.map(({ table, id, reason }) =>
    problem(
      "mutations",
      `${id} of ${table} does not get on: ${reason.replace(/\s+/g, " ").slice(0, 200)}`,
      `remove the cause, or end it by KILL MUTATION WHERE mutation_id = '${id}'; deletions wait for it`,
    ),
  );
};

const partFindings = async (inspector: Inspector): Promise<Findings> => {
  const crowded = await inspector.crowdedPartitions(MANY_PARTS);
  if (crowded.length === 0) return [ok("parts", `no partition has more than ${MANY_PARTS}`)];
  return crowded.map(({ table, partition, parts }) =>
    warning(
      "parts",
      `${parts} in partition ${partition} of ${table}`,
      "merges do not keep up: raise BATCH_MAX_RECORDS and BATCH_MAX_AGE_MS of ingest, or let compaction run",
    ),
  );
};

const settingFinding = async (inspector: Inspector): Promise<Finding> => {
  const { http_send_timeout: seconds = "" } = await inspector.settings(["http_send_timeout"]);
  const found = `http_send_timeout is ${seconds} s`;
  return Number(seconds) <= MIN_SEND_TIMEOUT_S
    ? warning(
        "settings",
        found,
        "set it above IDLE_TIMEOUT_MS of export-api in the default profile of the server, or pages of slow readers break off",
      )
    : ok("settings", found);
};

const HOUR_MS = 3_600_000;

const requestFinding = async (inspector: Inspector, deadlineHours: number): Promise<Finding> => {
  const { count, oldestAgeMs } = await inspector.openRequests();
  if (count === 0) return ok("erasure requests", "none is open");
  const found = `${count} open, the oldest for ${(oldestAgeMs / HOUR_MS).toFixed(1)} hours`;
  return oldestAgeMs > deadlineHours * HOUR_MS
    ? problem(
        "erasure requests",
        found,
        "they are overdue: start the jobs service; `export-ops jobs list --queue erasure` shows what stops them",
      )
    : ok("erasure requests", found);
};

const secretFinding = async (inspector: Inspector, secret: string): Promise<Finding> => {
  const stored = await inspector.suppressionSecret();
  if (stored === null) return ok("suppression secret", "none is stored yet");
  return stored === createSubjectHash(secret).ofSecret
    ? ok("suppression secret", "SUPPRESSION_SECRET is the one that the suppressions were made with")
    : problem(
        "suppression secret",
        "SUPPRESSION_SECRET is not the one that the suppressions were made with",
        "set that one everywhere: with another one nobody knows who was erased, and ingest and jobs do not start",
      );
};

/** A list that is complete only up to so long ago has an ingest that does not get on. */
const OLD_WATERMARK_MS = 10 * 60_000;

const watermarkFinding = async (server: WarehouseConfig): Promise<Finding> => {
  const marks = await withStore(
    server,
    () => createWatermarkReader({ ...server, application: "export-ops" }),
    (store) => store.load(),
  );
  const ages = LIST_NAMES.flatMap((list) => {
    const at = marks[list];
    return at === undefined ? [] : [[list, Date.now() - at / 1000] as const];
  });
  if (ages.length === 0) return warning("watermarks", "there are none", "start ingest, which writes them");
  const text = ages.map(([list, age]) => `${list} ${Math.max(0, Math.round(age / 1000))} s old`).join(", ");
  return ages.some(([, age]) => age > OLD_WATERMARK_MS)
    ? problem("watermarks", text, "ingest stands still or lags: look at its log and at `export-ops lag`")
    : ok("watermarks", text);
};

type Need = { readonly privileges: string; readonly on: string };
type UserNeeds = {
  readonly user: keyof ServiceUsers | "migrator";
  readonly variable: string;
  readonly needs: readonly Need[];
  /** What it needs beside, to speak to all servers of a cluster. */
  readonly onCluster?: readonly Need[];
  /** What this user must not be able to do. */
  readonly never: readonly Need[];
};

const ALL_TABLES = "{database}.*";
const RECORDS = "{database}.conversations";
const EVERY_SERVER: Need = { privileges: "REMOTE", on: "*.*" };

/** What the users must be able to do, and what not. */
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

const readerFinding = async (inspector: Inspector): Promise<Finding> => {
  const { readonly = "" } = await inspector.settings(["readonly"]);
  return readonly === "2"
    ? ok("user reader", "readonly is 2")
    : problem(
        "user reader",
        `readonly is ${readonly}`,
        "give it a profile with readonly = 2: 1 refuses the settings of its queries, 0 lets it write",
      );
};

const userFindings = async (needs: UserNeeds, server: WarehouseConfig | null): Promise<Findings> => {
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
        return needs.user === "reader" ? [grants, await readerFinding(inspector)] : [grants];
      } catch (error) {
        throw await explainStore(error, server, needs.variable);
      }
    });
  } finally {
    await inspector.close();
  }
};

/** The server, its tables and its users. `server`: with the user for migrations; `secret`: SUPPRESSION_SECRET, null when it is not given. */
export const warehouseFindings = async (
  server: WarehouseConfig,
  users: ServiceUsers,
  about: { readonly erasureDeadlineHours: number; readonly secret: string | null },
): Promise<Findings> => {
  const inspector = createInspector({ ...server, application: "export-ops", topology: server });
  const explained = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      throw await explainStore(error, server);
    }
  };
  try {
    const answers = await attempt(AREA, "server", async () => {
      await requireClickhouse(server);
      const { version, aheadMs, uncertainMs } = await explained(inspector.clock());
      return [versionFinding(version, new URL(server.url).host), clockFinding(aheadMs, uncertainMs)];
    });
    // A single finding is that it does not answer: it needs not be asked again.
    if (answers.length === 1) return answers;
    const checks: [string, () => Promise<Findings>][] = [
      ["schema", async () => [await schemaFinding(inspector)]],
      ["disk", () => diskFindings(inspector)],
      ["parts", () => partFindings(inspector)],
      ["mutations", () => mutationFindings(inspector)],
      ["settings", async () => [await settingFinding(inspector)]],
      ["watermarks", async () => [await watermarkFinding(server)]],
      ["erasure requests", async () => [await requestFinding(inspector, about.erasureDeadlineHours)]],
      [
        "suppression secret",
        async () => (about.secret === null ? [] : [await secretFinding(inspector, about.secret)]),
      ],
    ];
    const tables = await Promise.all(
      checks.map(([name, check]) => attempt(AREA, name, () => explained(check()))),
    );
    const asked = await Promise.all(
      USERS.map((needs) => {
        const user = needs.user === "migrator" ? server : users[needs.user];
        return userFindings(needs, user === null ? null : { ...server, ...user });
      }),
    );
    return [...answers, ...tables.flat(), ...asked.flat()];
  } finally {
    await inspector.close();
  }
};
