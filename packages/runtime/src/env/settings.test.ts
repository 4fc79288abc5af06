import { expect, it } from "vitest";
import { problemsOf } from "./problems.fixture.ts";
import { count, readSettings, variable } from "./settings.ts";
import { shared } from "./shared-settings.ts";

it("reads variables and groups of them in the shape of the readers", () => {
  const readers = {
    rows: variable("ROWS", count(10)),
    limits: { bytes: variable("BYTES", count(20)), twice: (env: object) => Object.keys(env).length * 2 },
  };
  expect(readSettings(readers, { ROWS: "3", BYTES: "" })).toEqual({
    rows: 3,
    limits: { bytes: 20, twice: 4 },
  });
  expect(
    problemsOf(() => readSettings(readers, { ROWS: "x", BYTES: "0" })).map((one) => one.split(":")[0]),
  ).toEqual(["ROWS", "BYTES"]);
});

it("throws what is no wrong variable as it is", () => {
  const bug = () => {
    throw new TypeError("a bug");
  };
  expect(() => readSettings({ bug }, {})).toThrow(TypeError);
});

const LISTS = ["conversations", "messages", "end_users"] as const;

it("wants a topic of its own, with a name that leaves room for the dead letters, for each kind of record", () => {
  const topics = (env: Record<string, string>) => problemsOf(() => shared.eventTopicsOf(LISTS)(env));
  expect(shared.eventTopicsOf(LISTS)({ TOPIC_MESSAGES: "a".repeat(237) })).toEqual({
    conversations: "conversations",
    messages: "a".repeat(237),
    end_users: "end-users",
  });
  expect(topics({ TOPIC_MESSAGES: "conversations" })).toEqual(["TOPIC_MESSAGES: must be a topic of its own"]);
  for (const name of ["a".repeat(238), "end users", "a/b"]) {
    expect(topics({ TOPIC_END_USERS: name })).toEqual([
      expect.stringMatching(/^TOPIC_END_USERS: must be a topic name/),
    ]);
  }
});
