import { describe, expect, it } from "vitest";
import { quorumFinding } from "./replica-findings.ts";

describe("quorumFinding", () => {
  it.each([
    [2, "2"],
    [3, "3"],
    [2, "auto"],
  ])("is content when all %i replicas acknowledge, with %s", (replicas, quorum) => {
    expect(quorumFinding("writer", replicas, quorum, "true")).toMatchObject({
      name: "replicas of writer",
      state: "ok",
      found: `all ${replicas} acknowledge an INSERT`,
    });
  });

  it.each([
    [2, "0"],
    [3, "2"],
    [3, "auto"],
  ])("warns when a replica of %i may be behind, with %s", (replicas, quorum) => {
    expect(quorumFinding("writer", replicas, quorum, "true")).toMatchObject({
      state: "warning",
      found: `insert_quorum is ${quorum}, and shards have ${replicas} replicas`,
      advice: expect.stringContaining(`insert_quorum = ${replicas}`),
    });
  });

  it.each(["0", "false"])("calls INSERTs one after the other a problem, with %s", (parallel) => {
    expect(quorumFinding("writer", 2, "2", parallel)).toMatchObject({
      state: "problem",
      found: "insert_quorum_parallel is 0",
    });
  });
});
