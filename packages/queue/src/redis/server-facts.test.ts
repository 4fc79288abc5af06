import { expect, it } from "vitest";
import { isInClusterMode, problemsOf, readServerFacts } from "./server-facts.ts";

const info = (version: string, policy: string, aof = 1): string =>
  `# Server\r\nredis_version:${version}\r\n# Memory\r\nmaxmemory_policy:${policy}\r\n# Persistence\r\naof_enabled:${aof}\r\n`;

it("reads version, policy and persistence from INFO", () => {
  expect(readServerFacts(info("7.0.15", "noeviction"))).toEqual({
    version: "7.0.15",
    maxmemoryPolicy: "noeviction",
    appendOnly: true,
  });
  expect(readServerFacts("")).toEqual({ version: null, maxmemoryPolicy: null, appendOnly: null });
});

it.each([
  ["6.2.0", "noeviction", []],
  ["10.0.0", "noeviction", []],
  ["6.0.16", "noeviction", [/too old/]],
  ["7.2.4", "volatile-lru", [/evict/]],
  ["5.0.14", "allkeys-lru", [/too old/, /evict/]],
])("Redis %s with %s", (version, policy, expected) => {
  const problems = problemsOf(readServerFacts(info(version, policy)));
  expect(problems).toEqual(expected.map((text) => expect.stringMatching(text)));
});

it("warns of a server that keeps nothing on disk", () => {
  expect(problemsOf(readServerFacts(info("7.2.4", "noeviction", 0)))).toEqual([
    expect.stringMatching(/appendonly/),
  ]);
});

it("does not complain about what the server hides", () => {
  expect(problemsOf({ version: null, maxmemoryPolicy: null, appendOnly: null })).toEqual([]);
});

it.each([
  ["# Cluster\r\ncluster_enabled:1\r\n", true],
  ["# Cluster\r\ncluster_enabled:0\r\n", false],
  ["", null],
])("reads from %j whether the server is in cluster mode", (text, expected) => {
  expect(isInClusterMode(text)).toBe(expected);
});
