import { expect, it } from "vitest";
import { profileFindings } from "./profile-findings.ts";

it("says nothing of a profile that changes no answer", () => {
  expect(profileFindings("user reader", [])).toEqual([]);
});

it("warns of what the services override, and of what they cannot", () => {
  const found = profileFindings("user reader", [
    { name: "join_use_nulls", value: "1", isFixed: false },
    { name: "limit", value: "10", isFixed: true },
    { name: "set_overflow_mode", value: "break", isFixed: false },
  ]);
  expect(found.map(({ name, state, found }) => [name, state, found])).toEqual([
    ["user reader", "problem", "its profile fixes limit = 10, so ClickHouse refuses its statements"],
    ["user reader", "warning", "its profile sets join_use_nulls = 1, set_overflow_mode = break"],
  ]);
});
