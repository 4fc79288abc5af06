import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readPorts, renderEnvFile } from "./env-file.ts";
import { projectFolder } from "../paths.ts";
import { commonEnvironment, type Surroundings } from "./services.ts";
import { publicVariables } from "./public-variables.ts";

test("leaves URLs as they are and quotes the rest", () => {
  const rendered = renderEnvFile({ URL: "http://a:b%40@127.0.0.1:1/c", ODD: "it's $HOME", EMPTY: "" });
  expect(rendered).toBe(
    "URL=http://a:b%40@127.0.0.1:1/c\nODD='it'\\''s $HOME'\nEMPTY=''\nexport URL ODD EMPTY\n",
  );
});

test("a shell reads back every value and gives it to its commands", () => {
  const value = fc.string({ unit: "grapheme", maxLength: 30 }).filter((text) => !text.includes("\0"));
  fc.assert(
    fc.property(value, (text) => {
      const script = `${renderEnvFile({ VALUE: text })}sh -c 'printf %s "$VALUE"'`;
      expect(execFileSync("sh", ["-c", script], { encoding: "utf8" })).toBe(text);
    }),
    { numRuns: 50 },
  );
});

test("reads ports, ignores what is not set, refuses what is not a port", () => {
  const variables = { kafka: "KAFKA_PORT", redis: "REDIS_PORT" };
  expect(readPorts({ KAFKA_PORT: "9092", REDIS_PORT: "" }, variables)).toEqual({ kafka: 9092 });
  for (const text of ["0", "65536", "-1", "1.5", "http"]) {
    expect(() => readPorts({ REDIS_PORT: text }, variables)).toThrow("REDIS_PORT");
  }
});

test("holds what the operators' command line reads, as it was given", () => {
  const about: Surroundings = {
    kafkaBrokers: "127.0.0.1:1",
    clickhouseUrl: (user) => `http://${user}`,
    redisUrl: "redis://127.0.0.1:2",
    cursorSecret: "c",
    suppressionSecret: "s",
  };
  const write = (given: NodeJS.ProcessEnv): Record<string, string> =>
    publicVariables(commonEnvironment(given, about), about, {}, "acme", "key");
  const [, page = ""] = readFileSync(join(projectFolder, "docs/configuration.md"), "utf8").split(
    "\n## ops\n",
  );
  const names = [...page.matchAll(/^\| `(?!CLICKHOUSE_|KAFKA_(?!GROUP_)|REDIS_)(\w+)`/gm)].map(
    ([, name = ""]) => name,
  );
  expect(names).toContain("KAFKA_GROUP_ID");
  const written = write(Object.fromEntries(names.map((name) => [name, `given ${name}`])));
  expect(names.filter((name) => written[name] === undefined)).toEqual([]);
  expect(written).toMatchObject({
    CLICKHOUSE_URL: "http://migrator",
    CLICKHOUSE_ANALYST_URL: "http://analyst",
    KAFKA_GROUP_ID: "given KAFKA_GROUP_ID",
    UPLOAD_WINDOW_SECONDS: "given UPLOAD_WINDOW_SECONDS",
  });
  expect(write({ LANDING: "" })).not.toHaveProperty("LANDING");
});
