import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../session/session.ts";
import { WarehouseError } from "../session/warehouse-error.ts";
import { onCluster, type Topology } from "./migration-template.ts";

/** The right to change the schema, held by one migration at a time. */
export type SchemaLock = {
  /** @throws ServiceError `migration_locked` when the lock may belong to another migration by now. */
  assertHeld(): void;
  release(): Promise<void>;
};

/**
 * A lock expires this long after its last renewal, so that a killed migration does not block the next one.
 */
const LEASE_SECONDS = 30;
const RENEWAL_MS = 5_000;
/** Lease of locks that name none: older releases created these and never renewed them. */
const UNRENEWED_LEASE_SECONDS = 600;
/** Time for another migration that found the same expired lock to drop ours, and for us to see it. */
const SETTLE_MS = 500;

const locked = (holder: string): ServiceError =>
  new ServiceError("migration_locked", `another migration runs (${holder}); try again`, { retryable: true });

/**
 * Takes the lock: a table that exists while a migration runs. Its comment names the holder, and the holder
 * renews the modification time of its definition.
 *
 * @throws ServiceError `migration_locked` when another migration holds it.
 */
export async function acquireSchemaLock(deps: {
  readonly session: Session;
  readonly database: string;
  readonly topology: Topology;
}): Promise<SchemaLock> {
  const { session, topology } = deps;
  // With Keeper, statements for the cluster run in one order on all servers: the lock is everywhere or
  // nowhere.
  const on = onCluster(topology);
  const drop = () => session.command("migrate.drop_lock", `DROP TABLE IF EXISTS schema_lock ${on}`);

  const old = await readLock(deps);
  if (old !== null && !old.expired) throw locked(old.holder);
  if (old !== null) {
    // Another migration may have taken over the expired lock since.
    const found = await readLock(deps);
    if (found !== null && (!found.expired || found.holder !== old.holder)) throw locked(found.holder);
    await drop();
  }

  const id = randomUUID();
  const host = hostname().replaceAll(/[^\w.-]/g, "_");
  const since = new Date().toISOString();
  const holder = `pid ${process.pid} on ${host} since ${since}, lease ${LEASE_SECONDS} s, ${id}`;
  let renewedAt = Date.now();
  try {
    // Without IF NOT EXISTS, CREATE TABLE succeeds for one of several migrations that start at once.
    await session.command(
      "migrate.lock",
      `CREATE TABLE schema_lock ${on} (owner String) ENGINE = Memory COMMENT '${holder}'`,
    );
  } catch (error) {
    if (error instanceof WarehouseError && error.causeName === "TABLE_ALREADY_EXISTS") {
      throw locked((await readLock(deps))?.holder ?? "just ended");
    }
    throw error;
  }

  if (old !== null) {
    await sleep(SETTLE_MS);
    const found = await readLock(deps);
    if (found?.holder !== holder) throw locked(found?.holder ?? "just ended");
  }

  let lost = false;
  const renew = async (): Promise<void> => {
    const startedAt = Date.now();
    const found = await readLock(deps);
    lost = found?.holder !== holder;
    if (lost) return;
    // Not ON CLUSTER: those statements wait in line behind the migration's own. One renewed server is enough.
    await session.command("migrate.renew_lock", `ALTER TABLE schema_lock MODIFY COMMENT '${holder}'`);
    renewedAt = startedAt;
  };
  let renewal = Promise.resolve();
  let renewing = false;
  const timer = setInterval(() => {
    if (renewing || lost) return;
    renewing = true;
    renewal = renew()
      // The next turn tries again; if none succeeds, the lease ends.
      .catch(() => {})
      .finally(() => {
        renewing = false;
      });
  }, RENEWAL_MS);
  timer.unref();

  const isHeld = (): boolean => !lost && Date.now() - renewedAt < LEASE_SECONDS * 1000;
  return {
    assertHeld: () => {
      if (!isHeld()) throw locked("this one did not renew its lock in time");
    },
    release: async () => {
      clearInterval(timer);
      await renewal;
      if (isHeld()) await drop();
    },
  };
}

/** Reads the lock; null: there is none. The latest renewal on any server counts. */
async function readLock({ session, database, topology }: Parameters<typeof acquireSchemaLock>[0]): Promise<{
  readonly holder: string;
  readonly expired: boolean;
} | null> {
  const tables =
    onCluster(topology) === "" ? "system.tables" : `clusterAllReplicas('${topology.cluster}', system.tables)`;
  const [lock] = await session.rows<{ holder: string; age: number | string }>(
    "migrate.lock_age",
    `SELECT comment AS holder, dateDiff('second', metadata_modification_time, now()) AS age
      FROM ${tables} WHERE database = {database:String} AND name = 'schema_lock' ORDER BY age LIMIT 1`,
    { parameters: { database } },
  );
  if (lock === undefined) return null;
  const lease = Number(/lease (\d+) s/.exec(lock.holder)?.[1] ?? UNRENEWED_LEASE_SECONDS);
  return { holder: lock.holder === "" ? "holder unknown" : lock.holder, expired: Number(lock.age) >= lease };
}
