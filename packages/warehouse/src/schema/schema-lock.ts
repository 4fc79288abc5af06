import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../session/session.ts";
import { onCluster, type Topology } from "./migration-template.ts";

/** So that a killed migration does not block the next. */
const LEASE_SECONDS = 30;
const RENEWAL_MS = 5_000;
/** Ends before others may take the lock. */
const HELD_MS = 20_000;
const ATTEMPTS = 5;

const locked = (holder: string): ServiceError =>
  new ServiceError("migration_locked", `another migration runs (${holder}); try again`, { retryable: true });

type Lock = { readonly table: string; readonly holder: string; readonly expired: boolean };

/**
 * The lock is a table: the comment names the holder, who renews its modification time and gives way to another.
 * @throws ServiceError `migration_locked`
 */
export async function acquireSchemaLock(deps: {
  readonly session: Session;
  readonly database: string;
  readonly topology: Topology;
}) {
  const { session, topology } = deps;
  const on = onCluster(topology);
  const drop = (name: string) => session.command("migrate.drop_lock", `DROP TABLE IF EXISTS ${name} ${on}`);
  const refuseFor = (locks: readonly Lock[]): void => {
    const live = locks.find(({ expired }) => !expired);
    if (live !== undefined) throw locked(live.holder);
  };

  const id = randomUUID();
  const table = `schema_lock_${id.replaceAll("-", "_")}`;
  const host = hostname().replaceAll(/[^\w.-]/g, "_");
  const since = new Date().toISOString();
  const holder = `pid ${process.pid} on ${host} since ${since}, lease ${LEASE_SECONDS} s, ${id}`;
  let renewedAt = 0;

  const readOthers = async () => (await readLocks(deps)).filter((lock) => lock.table !== table);
  const isAlone = async (last: boolean): Promise<boolean> => {
    refuseFor(await readLocks(deps));
    renewedAt = Date.now();
    await session.command(
      "migrate.lock",
      `CREATE TABLE ${table} ${on} (owner String) ENGINE = Memory COMMENT '${holder}'`,
    );
    let others = await readOthers();
    if (others.length > 0 && others.every(({ expired }) => expired)) {
      await sleep(RENEWAL_MS * 1.2);
      others = await readOthers();
    }
    if (others.every(({ expired }) => expired)) {
      for (const dead of others) await drop(dead.table);
      return true;
    }
    await drop(table);
    if (last) refuseFor(others);
    return false;
  };
  for (let attempt = 1; !(await isAlone(attempt === ATTEMPTS)); attempt += 1)
    await sleep(Math.random() * 500);

  let lost = false;
  const renew = async (): Promise<void> => {
    const startedAt = Date.now();
    // Not ON CLUSTER: that waits behind the migration's statements. One renewed server is enough.
    const isRenewed = await session
      .command("migrate.renew_lock", `ALTER TABLE ${table} MODIFY COMMENT '${holder}'`)
      .then(
        () => true,
        () => false,
      );
    // After the renewal: whoever took this lock for expired has one by now.
    const locks = await readLocks(deps);
    lost =
      !locks.some((lock) => lock.table === table) ||
      locks.some((lock) => lock.table !== table && !lock.expired);
    if (lost || !isRenewed) return;
    renewedAt = startedAt;
  };
  let renewal = Promise.resolve();
  let renewing = false;
  const timer = setInterval(() => {
    if (renewing || lost) return;
    renewing = true;
    renewal = renew()
      .catch(() => {})
      .finally(() => {
        renewing = false;
      });
  }, RENEWAL_MS);
  timer.unref();

  const isHeld = (): boolean => !lost && Date.now() - renewedAt < HELD_MS;
  return {
    /** @throws ServiceError `migration_locked` when another may hold it by now */
    assertHeld: (): void => {
      if (!isHeld()) throw locked("this one did not renew its lock in time");
    },
    release: async (): Promise<void> => {
      clearInterval(timer);
      await renewal;
      await drop(table);
    },
  };
}

/** The latest renewal counts, by each server's own clock. */
async function readLocks({
  session,
  database,
  topology,
}: Parameters<typeof acquireSchemaLock>[0]): Promise<Lock[]> {
  const tables =
    onCluster(topology) === "" ? "system.tables" : `clusterAllReplicas('${topology.cluster}', system.tables)`;
  const locks = await session.rows<{ table: string; holder: string; age: number | string }>(
    "migrate.locks",
    `SELECT name AS table, any(comment) AS holder, min(dateDiff('second', metadata_modification_time, nowInBlock())) AS age
      FROM ${tables} WHERE database = {database:String} AND startsWith(name, 'schema_lock') GROUP BY name ORDER BY age`,
    { parameters: { database } },
  );
  return locks.map(({ table, holder, age }) => ({
    table,
    holder: holder === "" ? "holder unknown" : holder,
    // Another version's lease may be longer. Far in the future: the clock was set back.
    expired: Math.abs(Number(age)) >= Number(/lease (\d+) s/.exec(holder)?.[1] ?? LEASE_SECONDS),
  }));
}
