import { clusterName, type Stack } from "@conversation-export/local-stack";
import type { Topology } from "@conversation-export/warehouse";

/** How many servers of ClickHouse a test has: `make test-cluster` runs the tests of one server with two. */
export const SHARDS = Number(process.env["TEST_SHARDS"] ?? 1);

export const topologyOf = ({ clickhouseShards }: Stack): Topology =>
  clickhouseShards.length === 1
    ? { cluster: null }
    : {
        cluster: clusterName,
        shards: clickhouseShards.map(({ host, port }) => `http://${host}:${port}`),
      };

/** The same as the variables of services and commands. */
export const clusterVariables = (stack: Stack): Readonly<Record<string, string>> => {
  const { cluster, shards = [] } = topologyOf(stack);
  return cluster === null ? {} : { CLUSTER: cluster, CLICKHOUSE_SHARD_URLS: shards.join(",") };
};

/** Of each system that is a cluster the addresses of its servers, by the one that is asked. */
const serversOf = new Map<string, readonly string[]>();

/** From now on statements to the first server are put as its cluster needs them. */
export const rememberShards = ({ clickhouseShards }: Stack): void => {
  const origins = clickhouseShards.map(({ host, port }) => `http://${host}:${port}`);
  if (origins[0] !== undefined && origins.length > 1) serversOf.set(origins[0], origins);
};

const CHANGE =
  /^\s*(ALTER TABLE|OPTIMIZE TABLE|DELETE FROM|TRUNCATE TABLE|SYSTEM (?:STOP|START) MERGES)(?:\s+(\w+))?/;
const ABOUT_TABLES = /\bsystem\.(parts|mutations)\b/g;

/**
 * How a test's statement for a single server is put on a cluster: a change goes to the local table on each server, and a
 * question about parts and mutations is one about all of them, under the names that queries use.
 */
export const spreadOver = (origin: string, sql: string): { servers: readonly string[]; sql: string } => {
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
