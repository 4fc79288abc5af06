import { ConfigError } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { REQUIRED } from "./config.fixture.ts";
import { readConfig } from "./config.ts";

const problemsOf = (env: Record<string, string>): string[] => {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.split(":")[0] ?? "");
    throw error;
  }
  return [];
};

it("needs the servers and a secret, and has defaults for the rest", () => {
  expect(problemsOf({})).toEqual(Object.keys(REQUIRED));
  expect(readConfig(REQUIRED)).toMatchObject({
    linkBounds: "same",
    keyCacheMs: 10_000,
    publicBaseUrl: undefined,
    previousCursorSecret: undefined,
    logLevel: "info",
    rateLimits: {
      sms_trigger: [
        { requests: 10, seconds: 1 },
        { requests: 10_000, seconds: 86_400 },
      ],
    },
  });
});

it("takes the service address with or without a slash at the end", () => {
  const base = (address: string) => readConfig({ ...REQUIRED, PUBLIC_BASE_URL: address }).publicBaseUrl;
  expect(base("https://export.example/api/")).toBe("https://export.example/api");
  expect(base("https://export.example/api")).toBe("https://export.example/api");
});

it.each([
  ["CURSOR_SECRET", "x".repeat(31)],
  ["CURSOR_SECRET_PREVIOUS", "short"],
  ["CLICKHOUSE_URL", "tcp://127.0.0.1:9000"],
  ["PUBLIC_BASE_URL", "export.example"],
  ["LINK_BOUNDS", "other"],
  ["KEY_CACHE_SECONDS", "11"],
  ["KEY_CACHE_SECONDS", "0"],
  ["PORT", "65536"],
  ["LOG_LEVEL", "loud"],
  ["RATE_LIMITS", "10 a second"],
  ["RATE_LIMITS_MESSAGES", "10/1s,20/1s"],
  ["TRUSTED_PROXIES", "everybody"],
  ["LEGACY_SUNSET", "next year"],
  ["MAX_PAGES", "0"],
  ["MAX_OPEN_DATA_SUBJECT_REQUESTS", "0"],
])("refuses %s=%s", (name, value) => {
  expect(problemsOf({ ...REQUIRED, [name]: value })).toEqual([name]);
});

it("refuses an end of the legacy versions before their deprecation", () => {
  const dates = { LEGACY_DEPRECATION: "2026-12-31", LEGACY_SUNSET: "2026-12-30" };
  expect(problemsOf({ ...REQUIRED, ...dates })).toEqual(["LEGACY_SUNSET"]);
  expect(problemsOf({ ...REQUIRED, ...dates, LEGACY_SUNSET: "2026-12-31" })).toEqual([]);
});

it("has one allowance for all operations, and others where they are given", () => {
  const { rateLimits } = readConfig({
    ...REQUIRED,
    RATE_LIMITS: "5/1s,100/1m",
    RATE_LIMITS_END_USERS: "off",
  });
  const all = [
    { requests: 5, seconds: 1 },
    { requests: 100, seconds: 60 },
  ];
  expect(rateLimits).toMatchObject({ conversations: all, messages: all, end_users: [] });
});

it("takes erasure requests at a human pace whatever the others have, and their status as often as anything", () => {
  const { rateLimits, requestCaps } = readConfig({ ...REQUIRED, RATE_LIMITS: "50/1s" });
  expect(rateLimits).toMatchObject({
    data_subject_request: [
      { requests: 1, seconds: 1 },
      { requests: 100, seconds: 3_600 },
      { requests: 1_000, seconds: 86_400 },
    ],
    data_subject_request_status: [{ requests: 50, seconds: 1 }],
  });
  expect(requestCaps).toEqual({ open: 1_000, identifiersPerDay: 5_000 });
  const perDay = (names: string) => ({ ...REQUIRED, MAX_DATA_SUBJECT_IDENTIFIERS_PER_DAY: names });
  expect(readConfig(perDay("101")).requestCaps.identifiersPerDay).toBe(101);
  expect(problemsOf(perDay("100"))).toEqual(["MAX_DATA_SUBJECT_IDENTIFIERS_PER_DAY"]);
  expect(readConfig({ ...REQUIRED, RATE_LIMITS_DATA_SUBJECT_REQUEST: "off" }).rateLimits).toMatchObject({
    data_subject_request: [],
  });
});

it("finds the user for erasure requests beside the address of the other one", () => {
  const { CLICKHOUSE_INTAKE_URL: _, ...rest } = REQUIRED;
  const intake = { CLICKHOUSE_INTAKE_USER: "intake", CLICKHOUSE_INTAKE_PASSWORD: "p:w" };
  const config = readConfig({ ...rest, ...intake });
  expect(config.clickhouseIntake).toEqual({ url: "http://intake:p%3Aw@127.0.0.1:8123/export" });
  expect(config.clickhouse).toEqual({ url: REQUIRED.CLICKHOUSE_URL });
  expect(problemsOf({ ...REQUIRED, CLICKHOUSE_INTAKE_PASSWORD: "another" })).toEqual([
    "CLICKHOUSE_INTAKE_PASSWORD",
  ]);
});
