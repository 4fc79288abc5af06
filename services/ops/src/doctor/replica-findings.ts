import { type Finding, findingsOf } from "./finding.ts";

const { ok, warning } = findingsOf("ClickHouse");

/**
 * Whether an INSERT of a user is on all replicas of its shard before it is acknowledged.
 *
 * @param replicas the largest number of servers of one shard
 * @param quorum `insert_quorum` of the user: a number, or `auto` for more than half of the replicas
 */
export const quorumFinding = (user: string, replicas: number, quorum: string): Finding => {
  const name = `replicas of ${user}`;
  const reached = quorum === "auto" ? Math.floor(replicas / 2) + 1 : Number(quorum);
  return reached >= replicas
    ? ok(name, `all ${replicas} acknowledge an INSERT`)
    : warning(
        name,
        `insert_quorum is ${quorum}, and shards have ${replicas} replicas`,
        `set insert_quorum = ${replicas} in its profile: readers who meet a replica that is behind miss records`,
      );
};
