import { clusterName, type Stack } from "@conversation-export/local-stack";
import type { Topology } from "@conversation-export/warehouse";

/** Number of ClickHouse servers of a test; `make test-cluster` sets two. */
export const SHARDS = Number(process.env["TEST_SHARDS"] ?? 1);

export const topologyOf = ({ clickhouseShards, hasKeeper }: Stack): Topology => {
  if (clickhouseShards.length === 1) return { cluster: null };
  if (hasKeeper) return { cluster: clusterName };
  return {
    cluster: clusterName,
    shards: clickhouseShards.map(({ host, port }) => `http://${host}:${port}`),
  };
};

/** The topology as environment variables of services and commands. */
export const clusterVariables = (stack: Stack): Readonly<Record<string, string>> => {
  const { cluster, shards } = topologyOf(stack);
  return {
    ...(cluster !== null && { CLUSTER: cluster }),
    ...(shards !== undefined && { CLICKHOUSE_SHARD_URLS: shards.join(",") }),
  };
};

/** Addresses of all servers of a cluster, by the address of its first server. */
const serversOf = new Map<string, readonly string[]>();

/** Makes `onAllShards` treat statements to the first server as statements to its cluster. */
export const rememberShards = ({ clickhouseShards }: Stack): void => {
  const origins = clickhouseShards.map(({ host, port }) => `http://${host}:${port}`);
  if (origins[0] !== undefined && origins.length > 1) serversOf.set(origins[0], origins);
};

const CHANGE =
  /^\s*(ALTER TABLE|OPTIMIZE TABLE|DELETE FROM|TRUNCATE TABLE|SYSTEM (?:STOP|START) MERGES)(?:\s+(\w+))?/;
const ABOUT_TABLES = /\bsystem\.(parts|mutations)\b/g;

/**
 * Rewrites a statement written for one server for a cluster: a change goes to the local table on each server,
 * and a question about parts and mutations asks all servers, with the table names of queries.
 */
export const onAllShards = (origin: string, sql: string): { servers: readonly string[]; sql: string } => {
  const servers = serversOf.get(origin);
  if (servers === undefined) return { servers: [origin], sql };
  if (CHANGE.test(sql)) {
    const local = (_: string, verb: string, table?: string): string =>
      table === undefined ? verb : `${verb} ${table}_local`;
    return { servers, sql: sql.replace(CHANGE, local) };
  }
  const everywhere = sql
    .replace(
      ABOUT_TABLES,
      (_, name: string) => `(SELECT * REPLACE (replaceRegexpOne(table, '_local$', '') AS table)
        FROM clusterAllReplicas('${clusterName}', system.${name}))`,
    )
    .replace(/\bsystem\.processes\b/g, `clusterAllReplicas('${clusterName}', system.processes)`);
  return { servers: [origin], sql: everywhere };
};
