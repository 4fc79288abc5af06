import { expect, it } from "vitest";
import { problemsOf, readServerFacts } from "./server-facts.ts";

const info = (version: string, policy: string): string =>
  `# Server\r\nredis_version:${version}\r\nredis_mode:standalone\r\n# Memory\r\nmaxmemory_policy:${policy}\r\n`;

it("reads version and policy from INFO", () => {
  expect(readServerFacts(info("7.0.15", "noeviction"))).toEqual({
    version: "7.0.15",
    maxmemoryPolicy: "noeviction",
  });
  expect(readServerFacts("")).toEqual({ version: null, maxmemoryPolicy: null });
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

it("does not complain about what the server hides", () => {
  expect(problemsOf({ version: null, maxmemoryPolicy: null })).toEqual([]);
});
