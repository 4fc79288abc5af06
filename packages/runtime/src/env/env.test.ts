import { describe, expect, it } from "vitest";
import { z } from "zod";
import { parseEnv } from "./env.ts";
import { problemsOf } from "./problems.fixture.ts";

const schema = z.object({
  PORT: z.coerce.number().int().min(1),
  PASSWORD: z.string().min(8),
  LEVEL: z.enum(["a", "b"]).default("a"),
});

const problems = (env: Record<string, string>) => problemsOf(() => parseEnv(schema, env));

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
    expect(problems({ PORT: "", PASSWORD: "long enough" })).toEqual(["PORT: is required"]);
  });

  it("names every wrong variable and no value", () => {
    const found = problems({ PORT: "x", PASSWORD: "hunter2", LEVEL: "c" });
    expect(found.map((problem) => problem.split(":")[0])).toEqual(["PORT", "PASSWORD", "LEVEL"]);
    expect(found.join()).not.toContain("hunter2");
  });
});
