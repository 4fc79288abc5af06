import { ConfigError } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { readConfig } from "./config.ts";

const REQUIRED = {
  CLICKHOUSE_URL: "http://reader:secret@127.0.0.1:8123/export",
  CURSOR_SECRET: "a secret of the tests, 32 letters long",
};

const problemsOf = (env: Record<string, string>): string[] => {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.split(":")[0] ?? "");
    throw error;
  }
  return [];
};

it("needs the warehouse and a secret, and has defaults for the rest", () => {
  expect(problemsOf({})).toEqual(["CLICKHOUSE_URL", "CURSOR_SECRET"]);
  expect(readConfig(REQUIRED)).toMatchObject({
    linkBounds: "same",
    keyCacheMs: 10_000,
    publicBaseUrl: undefined,
    previousCursorSecret: undefined,
    logLevel: "info",
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
  ["KEY_CACHE_SECONDS", "31"],
  ["KEY_CACHE_SECONDS", "0"],
  ["PORT", "65536"],
  ["LOG_LEVEL", "loud"],
])("refuses %s=%s", (name, value) => {
  expect(problemsOf({ ...REQUIRED, [name]: value })).toEqual([name]);
});
