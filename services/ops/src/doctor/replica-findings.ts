import type { ReplicaCounts, ReplicaState } from "@conversation-export/warehouse";
import { applying, type Finding, type Findings, findingsOf } from "./finding.ts";

const { ok, warning, problem } = findingsOf("ClickHouse");

const adviceFor = ({ least, most }: ReplicaCounts): string => {
  if (least === most) return `set insert_quorum = ${most} in its profile`;
  // `auto` is more than half: all of one or two.
  return most === 2 ? "set insert_quorum = 'auto' in its profile" : "give all shards as many replicas";
};

const urgentAdviceFor = (replicas: ReplicaCounts): string => {
  const { least, most } = replicas;
  const now = least < most && most > 2 ? `set insert_quorum = ${least} in its profile now, then ` : "";
  return `ClickHouse refuses INSERTs into it: ${now}${adviceFor(replicas)}`;
};

/** All replicas must have an INSERT before its acknowledgement. */
export const quorumFinding = (
  user: string,
  replicas: ReplicaCounts,
  quorum: string,
  parallel: string,
): Finding => {
  const name = `replicas of ${user}`;
  const { least, most } = replicas;
  const reachedOf = (count: number): number =>
    quorum === "auto" ? Math.floor(count / 2) + 1 : Number(quorum);
  const isOn = quorum === "auto" || Number(quorum) > 1;
  if (isOn && ["0", "false"].includes(parallel)) {
    return problem(
      name,
      "insert_quorum_parallel is 0",
      "leave it at 1: ClickHouse refuses asynchronous INSERTs, which store watermarks, and others that run at a time",
    );
  }
  if (isOn && reachedOf(least) > least) {
    const found = `insert_quorum is ${quorum}, and a shard has ${least} replicas`;
    return problem(name, found, urgentAdviceFor(replicas));
  }
  if (reachedOf(most) >= most) return ok(name, `an INSERT waits for all ${most}`);
  const advice = `${adviceFor(replicas)}: readers who meet a replica that is behind miss records`;
  return warning(name, `insert_quorum is ${quorum}, and shards have ${most} replicas`, advice);
};

/** Further behind is more than being busy with new rows. */
const BEHIND_SECONDS = 60;

export const replicaStateFindings = (states: readonly ReplicaState[]): Findings => {
  const findings = states.flatMap(({ server, readOnly, active, total, behindSeconds }) => {
    const name = `replicas on ${server}`;
    return applying([
      readOnly > 0 &&
        problem(
          name,
          `${readOnly} tables take no rows`,
          "the server has no session with Keeper: see that Keeper runs and that the server reaches it",
        ),
      active < total &&
        problem(
          name,
          `${active} of ${total} replicas answer`,
          "start the missing server, or remove it with SYSTEM DROP REPLICA: INSERTs that wait for all replicas fail",
        ),
      behindSeconds > BEHIND_SECONDS &&
        warning(
          name,
          `${behindSeconds} s behind`,
          "SELECT * FROM system.replication_queue WHERE last_exception != '' on that server says why",
        ),
    ]);
  });
  if (findings.length > 0 || states.length === 0) return findings;
  return [ok("replicas", "all answer and keep up")];
};

export const unknownClusterFinding = (): Finding =>
  problem(
    "replicas",
    "this server has no cluster of the name in CLUSTER",
    "add it to remote_servers, or set CLUSTER to a name in system.clusters",
  );

export const unreplicatedFinding = ({ most }: ReplicaCounts): Finding =>
  problem(
    "replicas",
    `shards have ${most} replicas, and CLICKHOUSE_SHARD_URLS is set, with which tables are not replicated`,
    "leave CLICKHOUSE_SHARD_URLS empty and give the servers a Keeper, or make each server a shard",
  );
