import { clusterName, type Stack } from "@conversation-export/local-stack";
import type { Topology } from "@conversation-export/warehouse";

/** `make test-cluster` sets two. */
export const SHARDS = Number(process.env["TEST_SHARDS"] ?? 1);

export const topologyOf = ({ clickhouseShards, hasKeeper }: Stack): Topology => {
  if (clickhouseShards.length === 1) return { cluster: null };
  if (hasKeeper) return { cluster: clusterName };
  return {
    cluster: clusterName,
    shards: clickhouseShards.map(({ host, port }) => `http://${host}:${port}`),
  };
};

export const clusterVariables = (stack: Stack): Readonly<Record<string, string>> => {
  const { cluster, shards } = topologyOf(stack);
  return {
    ...(cluster !== null && { CLUSTER: cluster }),
    ...(shards !== undefined && { CLICKHOUSE_SHARD_URLS: shards.join(",") }),
  };
};

const serversOf = new Map<string, readonly string[]>();

/** Statements to the first server then go to the cluster. */
export const rememberShards = ({ clickhouseShards }: Stack): void => {
  const origins = clickhouseShards.map(({ host, port }) => `http://${host}:${port}`);
  if (origins[0] !== undefined && origins.length > 1) serversOf.set(origins[0], origins);
};

const CHANGE =
  /^\s*(ALTER TABLE|OPTIMIZE TABLE|DELETE FROM|TRUNCATE TABLE|SYSTEM (?:STOP|START) MERGES)(?:\s+(\w+))?/;
const ABOUT_TABLES = /\bsystem\.(parts|mutations)\b/g;

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
