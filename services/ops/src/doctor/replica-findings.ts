import { type Finding, findingsOf } from "./finding.ts";

const { ok, warning, problem } = findingsOf("ClickHouse");

/**
 * Whether an INSERT of a user is on all replicas of its shard before it is acknowledged.
 *
 * @param replicas the largest number of servers of one shard
 * @param quorum `insert_quorum` of the user: a number, or `auto` for more than half of the replicas
 * @param parallel `insert_quorum_parallel` of the user
 */
export const quorumFinding = (user: string, replicas: number, quorum: string, parallel: string): Finding => {
  const name = `replicas of ${user}`;
  if (["0", "false"].includes(parallel)) {
    return problem(
      name,
      "insert_quorum_parallel is 0",
      "leave it at 1: ClickHouse refuses asynchronous INSERTs, which store watermarks, and others that run at a time",
    );
  }
  const reached = quorum === "auto" ? Math.floor(replicas / 2) + 1 : Number(quorum);
  return reached >= replicas
    ? ok(name, `all ${replicas} acknowledge an INSERT`)
    : warning(
        name,
        `insert_quorum is ${quorum}, and shards have ${replicas} replicas`,
        `set insert_quorum = ${replicas} in its profile: readers who meet a replica that is behind miss records`,
      );
};
