import { describe, expect, it } from "vitest";
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { parseEnv } from "./env.ts";

const schema = z.object({
  PORT: z.coerce.number().int().min(1),
  PASSWORD: z.string().min(8),
  LEVEL: z.enum(["a", "b"]).default("a"),
});

const problemsOf = (env: Record<string, string | undefined>): readonly string[] => {
  try {
    parseEnv(schema, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error("expected a ConfigError");
};

describe("parseEnv", () => {
  it("returns the typed values and defaults, and ignores variables it does not know", () => {
    expect(parseEnv(schema, { PORT: "80", PASSWORD: "long enough", HOME: "/" })).toEqual({
      PORT: 80,
      PASSWORD: "long enough",
      LEVEL: "a",
    });
  });

  it("takes an empty variable as absent", () => {
    expect(parseEnv(schema, { PORT: "80", PASSWORD: "long enough", LEVEL: "" }).LEVEL).toBe("a");
    expect(problemsOf({ PORT: "", PASSWORD: "long enough" })).toEqual(["PORT: is required"]);
  });

  it("names every wrong variable and no value", () => {
    const problems = problemsOf({ PORT: "x", PASSWORD: "hunter2", LEVEL: "c" });
    expect(problems.map((problem) => problem.split(":")[0])).toEqual(["PORT", "PASSWORD", "LEVEL"]);
    expect(problems.join()).not.toContain("hunter2");
  });
});
