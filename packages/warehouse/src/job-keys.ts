import type { ClickHouseClient } from "@clickhouse/client";
import { clusterNames } from "./cluster-names.ts";
import type { EveryServer } from "./every-server.ts";
import type { Topology } from "./migration-template.ts";

/** Longer than one step of a job takes. */
const LEFT_BEHIND = "INTERVAL 1 HOUR";

/**
 * Removes what a run has noted in `job_keys`. Every run has a partition of its own, so its rows go at once and no
 * active part keeps them.
 */
export type JobKeys = {
  forget(run: string): Promise<void>;
  /** Forgets runs whose name begins with `prefix` and whose process died more than an hour ago. */
  forgetLeft(prefix: string): Promise<void>;
};

export const createJobKeys = (deps: {
  readonly client: ClickHouseClient;
  readonly servers: EveryServer;
  readonly topology: Topology;
}): JobKeys => {
  const { client, servers } = deps;
  const target = clusterNames(deps.topology).target("job_keys");

  const forget = async (run: string): Promise<void> => {
    await servers.command({
      query: `ALTER TABLE ${target} DROP PARTITION {run:String}`,
      query_params: { run },
    });
  };

  return {
    forget,
    forgetLeft: async (prefix) => {
      const result = await client.query({
        query: `SELECT DISTINCT run_id AS run FROM job_keys
          WHERE startsWith(run_id, {prefix:String}) AND added_at < now() - ${LEFT_BEHIND}`,
        query_params: { prefix },
        format: "JSONEachRow",
      });
      for (const { run } of await result.json<{ run: string }>()) await forget(run);
    },
  };
};
