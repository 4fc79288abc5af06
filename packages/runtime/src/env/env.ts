import type { z } from "zod";
import { ConfigError } from "../errors.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Empty variables count as absent; errors never show values, which may be secrets. */
export const parseEnv = <S extends z.ZodObject>(schema: S, env: Environment): z.output<S> => {
  const given: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const value = env[name];
    if (value !== undefined && value !== "") given[name] = value;
  }
  const result = schema.safeParse(given, { reportInput: false });
  if (result.success) return result.data;
  throw new ConfigError(
    result.error.issues.map((issue) => {
      const name = String(issue.path[0] ?? "(environment)");
      return `${name}: ${name in given ? issue.message : "is required"}`;
    }),
  );
};
