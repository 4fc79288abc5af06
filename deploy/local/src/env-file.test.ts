import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readPorts, renderEnvFile } from "./env-file.ts";

test("leaves URLs as they are and quotes the rest", () => {
  const rendered = renderEnvFile({ URL: "http://a:b%40@127.0.0.1:1/c", ODD: "it's $HOME", EMPTY: "" });
  expect(rendered).toBe("URL=http://a:b%40@127.0.0.1:1/c\nODD='it'\\''s $HOME'\nEMPTY=''\n");
});

test("a shell reads back every value", () => {
  const value = fc.string({ unit: "grapheme", maxLength: 30 }).filter((text) => !text.includes("\0"));
  fc.assert(
    fc.property(value, (text) => {
      const script = `${renderEnvFile({ VALUE: text })}printf %s "$VALUE"`;
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
