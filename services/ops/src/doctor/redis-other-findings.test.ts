import { expect, it } from "vitest";
import { redisOtherFinding } from "./redis-other-findings.ts";

const at = (...ids: readonly string[]) => ids.map((redis, index) => ({ id: `${index}`, redis }));

it.each([
  ["none is alive", [], "ok", "0 jobs processes use this one"],
  ["all use this one", ["a", "a"], "ok", "2 jobs processes use this one"],
  ["one uses another", ["a", "b"], "problem", "1 jobs process uses a at r:1, 1 jobs process uses b"],
  ["all use another", ["b", "b"], "problem", "0 jobs processes use a at r:1, 2 jobs processes use b"],
  [
    "two others",
    ["b", "c"],
    "problem",
    "0 jobs processes use a at r:1, 1 jobs process uses b, 1 jobs process uses c",
  ],
] as const)("%s", (_, alive, state, found) => {
  const finding = redisOtherFinding("a", "r:1", at(...alive));
  expect(finding).toMatchObject({ name: "redis_other", state, found });
  expect(finding.advice ?? "").toContain(state === "ok" ? "" : "the same REDIS_URL");
});
