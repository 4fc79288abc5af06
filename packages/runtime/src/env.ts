import type { z } from "zod";
import { ConfigError } from "./errors.ts";

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the variables that the schema names and returns its output. An empty variable counts as absent.
 * @throws ConfigError with every wrong variable by name; values never appear in it, they may be secrets.
 */
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

/** The results of all reads in their order. @throws ConfigError with the problems of all of them, each once */
export const readAll = <Results extends readonly unknown[]>(
  ...reads: { readonly [At in keyof Results]: () => Results[At] }
): Results => {
  const problems = new Set<string>();
  const results = reads.map((read) => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const problem of error.problems) problems.add(problem);
      return undefined;
    }
  });
  if (problems.size > 0) throw new ConfigError([...problems]);
  return results as unknown as Results;
};
