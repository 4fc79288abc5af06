import { expect, it } from "vitest";
import { memberFinding } from "./bus-findings.ts";

it.each([
  [2, "ok", "2 in the group g", null],
  [0, "warning", "no process is in the group g", "start ingest: no new events are stored"],
] as const)("%d members of the group: %s, %s", (members, state, found, advice) => {
  expect(memberFinding(members, "g")).toMatchObject({ name: "ingest", state, found, advice });
});
