import type { RedisServer } from "@conversation-export/runtime";
import { createCoordination, UNKNOWN_REDIS } from "@conversation-export/warehouse";
import type { WarehouseConfig } from "../config.ts";
import { withRedis, withWarehouse } from "../connect/connections.ts";
import { redisPlace } from "../explain/explain.ts";
import { attempt, type Finding, type Findings, findingsOf } from "./finding.ts";

const AREA = "Redis";
const NAME = "redis_other";
const { ok, problem } = findingsOf(AREA);

const counted = (count: number): string =>
  count === 1 ? "1 jobs process uses" : `${count} jobs processes use`;

/** Locks in Redis keep jobs apart. */
export const redisOtherFinding = (
  own: string,
  place: string,
  alive: readonly { readonly id: string; readonly redis: string }[],
): Finding => {
  const here = alive.filter(({ redis }) => redis === own).length;
  const others = Map.groupBy(
    // Until it has reached its Redis, a process knows no id.
    alive.filter(({ redis }) => redis !== own && redis !== UNKNOWN_REDIS),
    ({ redis }) => redis,
  );
  if (others.size === 0) return ok(NAME, `${counted(here)} this one`);
  const elsewhere = [...others].map(([redis, processes]) => `${counted(processes.length)} ${redis}`);
  return problem(
    NAME,
    `${counted(here)} ${own} at ${place}, ${elsewhere.join(", ")}`,
    "give all jobs processes and this command the same REDIS_URL (`GET conversation-export:id` shows the id of a server), and run doctor again two minutes later: until then backfill, compaction and retention may run twice at a time",
  );
};

/** Another check reports that ClickHouse is away. */
export const redisOtherFindings = async (
  server: RedisServer,
  warehouse: WarehouseConfig,
): Promise<Findings> => {
  const found = await attempt(AREA, NAME, async () => {
    const [own, alive] = await Promise.all([
      withRedis(server, (redis) => redis.ownId()),
      withWarehouse(warehouse, (session) => createCoordination({ session }).processes()),
    ]);
    return redisOtherFinding(own, redisPlace(server), alive);
  });
  return found.filter(({ state }) => state !== "away");
};
