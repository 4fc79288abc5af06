import { LIST_NAMES } from "@conversation-export/domain";
import { createSubjectHash } from "@conversation-export/suppression";
import {
  createClientStore,
  createInspector,
  createSession,
  createUnregisteredClientStore,
  createWatermarkStore,
  type Inspector,
  type KeyRow,
  type ReplicaCounts,
  type Session,
} from "@conversation-export/warehouse";
import type { ServiceUsers, WarehouseConfig } from "../config.ts";
import { explainStore, requireClickhouse } from "../connect/connections.ts";
import { clientUserFindings } from "./client-user-findings.ts";
import { namedClients } from "../output/client-names.ts";
import { attempt, type Finding, type Findings, findingsOf } from "./finding.ts";
import { replicaStateFindings, unknownClusterFinding, unreplicatedFinding } from "./replica-findings.ts";
import { USERS, userFindings } from "./warehouse-users.ts";

const AREA = "ClickHouse";
const { ok, warning, problem } = findingsOf(AREA);

/** Oldest version tested. */
const TESTED_VERSION = [25, 8] as const;
/** Beyond, watermarks are not stored. */
const MAX_CLOCK_DIFFERENCE_MS = 1_000;
/** export-api waits this long for a slow reader, so ClickHouse must wait longer. */
const MIN_SEND_TIMEOUT_S = 60;
const MIN_FREE_SHARE = 0.15;
const MANY_PARTS = 300;

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;

const versionFinding = (version: string, host: string): Finding => {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [testedMajor, testedMinor] = TESTED_VERSION;
  const older = major < testedMajor || (major === testedMajor && minor < testedMinor);
  const found = `${version} at ${host}`;
  const advice = `versions before ${TESTED_VERSION.join(".")} are not tested: update ClickHouse`;
  return older ? warning("server", found, advice) : ok("server", found);
};

const clockFinding = (aheadMs: number, uncertainMs: number): Finding => {
  const certainly = Math.max(0, Math.abs(aheadMs) - uncertainMs);
  const found = `${(Math.abs(aheadMs) / 1000).toFixed(1)} s ${aheadMs < 0 ? "behind" : "ahead of"} this machine`;
  return certainly > MAX_CLOCK_DIFFERENCE_MS
    ? problem("clock", found, "let NTP set the clocks: watermarks and upload times depend on them")
    : ok("clock", found);
};

const schemaFinding = async (inspector: Inspector): Promise<Finding> => {
  const states = await inspector.schema();
  const names = (state: string) => states.filter((one) => one.state === state).map(({ name }) => name);
  const [changed, pending, later] = [names("changed"), names("pending"), names("later")];
  if (changed.length > 0) {
    const advice = "run the version of this software that created the database, or a newer one";
    return problem("schema", `differ from the applied migrations: ${changed.join(", ")}`, advice);
  }
  if (pending.length > 0) {
    return problem("schema", `not applied: ${pending.join(", ")}`, "run `export-ops migrate`");
  }
  if (later.length > 0) {
    const advice = "update this installation, so that all processes run the same version";
    return warning("schema", `of a newer version: ${later.join(", ")}`, advice);
  }
  return ok("schema", `${states.length} migrations, all applied`);
};

const viewFinding = async (inspector: Inspector): Promise<Finding> => {
  const wrong = await inspector.wrongViews();
  if (wrong.length === 0) return ok("views", "those for analysts are as this version makes them");
  const found = `not made, or by another version or for another ClickHouse: ${wrong.join(", ")}`;
  const advice =
    "run `export-ops migrate`, or analysts find other columns than docs/data-dictionary.md names, and clients none";
  return problem("views", found, advice);
};

const diskFindings = async (inspector: Inspector): Promise<Findings> =>
  (await inspector.disks()).map(({ name, freeBytes, totalBytes }) => {
    const found = `${gigabytes(freeBytes)} of ${gigabytes(totalBytes)} free`;
    const advice = "make room: merges and erasures write new parts before they delete the old ones";
    const isFull = freeBytes / totalBytes < MIN_FREE_SHARE;
    return isFull ? warning(`disk ${name}`, found, advice) : ok(`disk ${name}`, found);
  });

const mutationFindings = async (inspector: Inspector): Promise<Findings> => {
  const stuck = await inspector.stuckMutations();
  if (stuck.length === 0) return [ok("mutations", "none is stuck")];
  return stuck.map(({ table, id, reason }) =>
    problem(
      "mutations",
      `${id} of ${table} is stuck: ${reason.replace(/\s+/g, " ").slice(0, 200)}`,
      `remove the cause, or end it with KILL MUTATION WHERE mutation_id = '${id}'; deletions wait for it`,
    ),
  );
};

const partFindings = async (inspector: Inspector): Promise<Findings> => {
  const crowded = await inspector.crowdedPartitions(MANY_PARTS);
  if (crowded.length === 0) return [ok("parts", `no partition has more than ${MANY_PARTS}`)];
  const advice = "merges do not keep up: raise BATCH_MAX_RECORDS and BATCH_MAX_AGE_MS of ingest";
  return crowded.map(({ table, partition, parts }) =>
    warning("parts", `${parts} in partition ${partition} of ${table}`, advice),
  );
};

const settingFinding = async (inspector: Inspector): Promise<Finding> => {
  const { http_send_timeout: seconds = "" } = await inspector.settings(["http_send_timeout"]);
  const found = `http_send_timeout is ${seconds} s`;
  if (Number(seconds) > MIN_SEND_TIMEOUT_S) return ok("settings", found);
  const advice =
    "set it above IDLE_TIMEOUT_MS of export-api in the default profile of the server, or pages of slow readers are cut off";
  return warning("settings", found, advice);
};

const HOUR_MS = 3_600_000;

const requestFinding = async (inspector: Inspector, deadlineMs: number): Promise<Finding> => {
  const { count, oldestAgeMs } = await inspector.openRequests();
  if (count === 0) return ok("erasure requests", "none is open");
  const found = `${count} open, the oldest for ${(oldestAgeMs / HOUR_MS).toFixed(1)} hours`;
  const advice = "they are overdue: start the jobs service; `export-ops jobs list --queue erasure` shows why";
  return oldestAgeMs > deadlineMs
    ? problem("erasure requests", found, advice)
    : ok("erasure requests", found);
};

const secretFinding = async (inspector: Inspector, secret: string): Promise<Finding> => {
  const name = "suppression secret";
  const stored = await inspector.suppressionSecret();
  if (stored === null) return ok(name, "none is stored yet");
  if (stored === createSubjectHash(secret).ofSecret)
    return ok(name, "SUPPRESSION_SECRET matches the stored suppressions");
  const advice =
    "set the one they were made with everywhere: with another one erased persons are not recognised, and ingest and jobs do not start";
  return problem(name, "SUPPRESSION_SECRET does not match the stored suppressions", advice);
};

const DAY_MS = 24 * HOUR_MS;
const OLD_KEY_DAYS = 365;
/** A consumer needs some days to change its key. */
const EXPIRES_SOON_DAYS = 14;

const keyFinding = async (session: Session): Promise<Finding> => {
  const keys = await createClientStore({ session, now: Date.now }).listKeys(null);
  const daysTo = (instant: string): number => (Date.parse(instant) - Date.now()) / DAY_MS;
  const used = keys.filter(
    ({ revoked, expiresAt }) => !revoked && (expiresAt === null || daysTo(expiresAt) > 0),
  );
  const idsOf = (which: (key: KeyRow) => boolean): string =>
    used
      .flatMap((key) => (which(key) ? [key.keyId] : []))
      .slice(0, 10)
      .join(", ");
  const old = idsOf(({ createdAt }) => -daysTo(createdAt) > OLD_KEY_DAYS);
  const ending = idsOf(({ expiresAt }) => expiresAt !== null && daysTo(expiresAt) < EXPIRES_SOON_DAYS);
  const advice = "give their consumers new ones";
  if (ending !== "") return warning("keys", `expire within ${EXPIRES_SOON_DAYS} days: ${ending}`, advice);
  return old === ""
    ? ok("keys", `${used.length} in use, none older than ${OLD_KEY_DAYS} days`)
    : warning("keys", `older than ${OLD_KEY_DAYS} days: ${old}`, `${advice} and revoke them`);
};

const OLD_WATERMARK_MS = 10 * 60_000;

const watermarkFinding = async (session: Session): Promise<Finding> => {
  const marks = await createWatermarkStore({ session }).load();
  const ages = LIST_NAMES.flatMap((list) => {
    const at = marks[list];
    return at === undefined ? [] : [[list, Date.now() - at / 1000] as const];
  });
  if (ages.length === 0) return warning("watermarks", "there are none", "start ingest, which sets them");
  const text = ages.map(([list, age]) => `${list} ${Math.max(0, Math.round(age / 1000))} s old`).join(", ");
  if (ages.every(([, age]) => age <= OLD_WATERMARK_MS)) return ok("watermarks", text);
  const advice = "ingest is stopped or lags: see its log and `export-ops status --partitions`";
  return problem("watermarks", text, advice);
};

const clientFinding = async (session: Session): Promise<Finding> => {
  const clients = await createUnregisteredClientStore({ session }).list();
  if (clients.length === 0) return ok("clients", "no events of clients that are not registered");
  const advice =
    "register them with `export-ops clients create`, or have the platform correct `clientid` and export the records again: nobody can read these";
  return warning("clients", namedClients(clients), advice);
};

/** `secret`: SUPPRESSION_SECRET. */
export const warehouseFindings = async (
  server: WarehouseConfig,
  users: ServiceUsers | null,
  about: { readonly erasureDeadlineMs: number; readonly secret: string | null },
): Promise<Findings> => {
  const access = { ...server, application: "export-ops", topology: server };
  const inspector = createInspector(access);
  const session = createSession(access);
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
    // It does not answer: further checks would time out.
    if (answers.length === 1) return answers;
    const checks: [string, () => Promise<Finding | Findings>][] = [
      ["schema", () => schemaFinding(inspector)],
      ["views", () => viewFinding(inspector)],
      ["client users", async () => clientUserFindings(await inspector.clientUsers())],
      ["disk", () => diskFindings(inspector)],
      ["parts", () => partFindings(inspector)],
      ["mutations", () => mutationFindings(inspector)],
      ["replicas", async () => replicaStateFindings(await inspector.replicaStates())],
      ["settings", () => settingFinding(inspector)],
      ["watermarks", () => watermarkFinding(session)],
      ["clients", () => clientFinding(session)],
      ["keys", () => keyFinding(session)],
      ["erasure requests", () => requestFinding(inspector, about.erasureDeadlineMs)],
      [
        "suppression secret",
        async () => (about.secret === null ? [] : secretFinding(inspector, about.secret)),
      ],
    ];
    const tables = await Promise.all(
      checks.map(([name, check]) => attempt(AREA, name, () => explained(check()))),
    );
    let replicas: ReplicaCounts | null = null;
    const unreplicated = await attempt(AREA, "replicas", async () => {
      const counted = await explained(inspector.replicas());
      if (counted.most === 0) return [unknownClusterFinding()];
      if (counted.most === 1) return [];
      if (server.shards !== undefined) return [unreplicatedFinding(counted)];
      replicas = counted;
      return [];
    });
    const asked = await Promise.all(
      USERS.map((needs) => {
        const user = needs.user === "migrator" ? server : (users?.[needs.user] ?? null);
        return userFindings(needs, user === null ? null : { ...server, ...user }, replicas);
      }),
    );
    return [...answers, ...tables.flat(), ...unreplicated, ...asked.flat()];
  } finally {
    await Promise.all([inspector.close(), session.close()]);
  }
};
