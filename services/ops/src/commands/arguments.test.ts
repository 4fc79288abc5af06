import { Command, InvalidArgumentError } from "commander";
import { expect, it } from "vitest";
import { checkSpan, future, instant, offsetRange } from "./arguments.ts";

const now = (): Date => new Date("2026-11-21T12:00:00Z");
const at = instant(now);
const later = future(now);

it.each([
  ["2026-11-01", "2026-11-01T00:00:00.000000Z"],
  ["2026-11-01T06:00:00.123456Z", "2026-11-01T06:00:00.123456Z"],
  ["2026-11-01 06:00", "2026-11-01T06:00:00.000000Z"],
  ["2026-11-01T06:00:00+02:00", "2026-11-01T04:00:00.000000Z"],
  ["90m", "2026-11-21T10:30:00.000000Z"],
  ["3d", "2026-11-18T12:00:00.000000Z"],
])("reads %s as %s", (text, expected) => {
  expect(at(text)).toBe(expected);
});

it.each([
  "",
  "yesterday",
  "2026-02-30",
  "1969-12-31",
  "2107-01-01",
  "-3d",
  "3w",
  "99999999d",
])("refuses %j as an instant", (text) => {
  expect(() => at(text)).toThrow(InvalidArgumentError);
});

it.each([
  ["90d", "2027-02-19T12:00:00.000Z"],
  ["2026-11-21T12:00:00.001Z", "2026-11-21T12:00:00.001Z"],
  ["2026-11-21T13:00:00+00:30", "2026-11-21T12:30:00.000Z"],
])("reads %s as %s, which is to come", (text, expected) => {
  expect(later(text)).toBe(expected);
});

it.each([
  "0d",
  "2026-11-21T12:00:00Z",
  "3d ago",
  "999999d",
  "2106-01-02",
])("refuses %j as an instant to come", (text) => {
  expect(() => later(text)).toThrow(InvalidArgumentError);
});

it("collects ranges of different partitions", () => {
  expect(offsetRange("1=5-9", offsetRange("0=0-1"))).toEqual([
    { partition: 0, from: 0, to: 1 },
    { partition: 1, from: 5, to: 9 },
  ]);
  for (const text of ["0", "0=1", "0=2-1", "0=1-1", "70000=0-1", "0=-1-5"]) {
    expect(() => offsetRange(text)).toThrow(InvalidArgumentError);
  }
});

it("ends a command whose span is empty", () => {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  const [earlier, later] = ["2026-11-01T00:00:00.000000Z", "2026-11-02T00:00:00.000000Z"];
  for (const span of [{}, { since: later }, { until: earlier }, { since: earlier, until: later }])
    expect(() => checkSpan(span, command)).not.toThrow();
  for (const since of [earlier, later])
    expect(() => checkSpan({ since, until: earlier }, command)).toThrow(
      "--since must be earlier than --until",
    );
});
