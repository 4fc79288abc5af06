import { describe, expect, it } from "vitest";
import { quorumFinding, replicaStateFindings } from "./replica-findings.ts";

const same = (count: number) => ({ least: count, most: count });

describe("quorumFinding", () => {
  it.each([
    [same(2), "2", "an INSERT waits for all 2"],
    [same(3), "3", "an INSERT waits for all 3"],
    [same(2), "auto", "an INSERT waits for all 2"],
    [{ least: 1, most: 2 }, "auto", "an INSERT waits for all 2"],
  ])("is content when all of %o acknowledge, with %s", (replicas, quorum, found) => {
    expect(quorumFinding("writer", replicas, quorum, "true")).toMatchObject({
      name: "replicas of writer",
      state: "ok",
      found,
    });
  });

  it.each([
    [same(2), "0", "insert_quorum = 2"],
    [same(3), "2", "insert_quorum = 3"],
    [same(3), "auto", "insert_quorum = 3"],
    [{ least: 1, most: 2 }, "0", "insert_quorum = 'auto'"],
    [{ least: 2, most: 3 }, "2", "as many replicas"],
  ])("warns when a replica of %o may be behind, with %s", (replicas, quorum, advice) => {
    expect(quorumFinding("writer", replicas, quorum, "true")).toMatchObject({
      state: "warning",
      found: `insert_quorum is ${quorum}, and shards have ${replicas.most} replicas`,
      advice: expect.stringContaining(advice),
    });
  });

  it.each([
    [same(2), "3", "insert_quorum = 2"],
    [{ least: 1, most: 2 }, "2", "insert_quorum = 'auto'"],
    [{ least: 2, most: 3 }, "3", "insert_quorum = 2 in its profile now, then give all shards as many"],
  ])("calls it a problem when a shard of %o could not take an INSERT, with %s", (replicas, quorum, advice) => {
    expect(quorumFinding("writer", replicas, quorum, "true")).toMatchObject({
      state: "problem",
      found: `insert_quorum is ${quorum}, and a shard has ${replicas.least} replicas`,
      advice: expect.stringContaining(advice),
    });
  });

  it.each(["0", "false"])("calls INSERTs one after the other a problem, with %s", (parallel) => {
    expect(quorumFinding("writer", same(2), "2", parallel)).toMatchObject({
      state: "problem",
      found: "insert_quorum_parallel is 0",
    });
    expect(quorumFinding("writer", same(2), "0", parallel).state).toBe("warning");
  });
});

describe("replicaStateFindings", () => {
  const well = { server: "ch-1", readOnly: 0, active: 2, total: 2, behindSeconds: 3 };
  const said = (...changes: readonly Partial<typeof well>[]): string[] =>
    replicaStateFindings(changes.map((change) => ({ ...well, ...change }))).map(
      ({ state, name, found }) => `${state} ${name}: ${found}`,
    );

  it("says nothing where nothing replicates, and one line when all is well", () => {
    expect(said()).toEqual([]);
    expect(said({}, { server: "ch-2" })).toEqual(["ok replicas: all answer and keep up"]);
  });

  it("names each server that takes no rows, misses another or is behind", () => {
    expect(
      said({ readOnly: 9 }, { server: "ch-2", active: 1 }, { server: "ch-3", behindSeconds: 61 }, {}),
    ).toEqual([
      "problem replicas on ch-1: 9 tables take no rows",
      "problem replicas on ch-2: 1 of 2 replicas answer",
      "warning replicas on ch-3: 61 s behind",
    ]);
  });
});
