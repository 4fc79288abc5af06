import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { type Environment, parseEnv } from "./env.ts";

/** Throws ConfigError. */
export type SettingReader<T = unknown> = (env: Environment) => T;

type SettingReaders = { readonly [name: string]: SettingReader | SettingReaders };

export type Settings<Readers extends SettingReaders> = {
  readonly [Name in keyof Readers]: Readers[Name] extends SettingReader<infer T>
    ? T
    : Readers[Name] extends SettingReaders
      ? Settings<Readers[Name]>
      : never;
};

export const variable =
  <S extends z.ZodType>(name: string, schema: S): SettingReader<z.output<S>> =>
  (env) =>
    parseEnv(z.object({ [name]: schema }), env)[name] as z.output<S>;

export const count = (fallback: number, min = 1, max = Number.MAX_SAFE_INTEGER) =>
  z.coerce.number().int().min(min).max(max).default(fallback);

export const port = (fallback: number) => count(fallback, 0, 65_535);

export const secret = z.string().min(32, "must have at least 32 characters");

const isReader = (value: SettingReader | SettingReaders): value is SettingReader =>
  typeof value === "function";

/** Throws one ConfigError with the problems of all readers. */
export const readSettings = <Readers extends SettingReaders>(
  readers: Readers,
  env: Environment,
): Settings<Readers> => {
  const problems = new Set<string>();
  const read = (group: SettingReaders): object =>
    Object.fromEntries(
      Object.entries(group).map(([name, one]) => {
        if (!isReader(one)) return [name, read(one)];
        try {
          return [name, one(env)];
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error;
          for (const problem of error.problems) problems.add(problem);
          return [name, undefined];
        }
      }),
    );
  const settings = read(readers);
  if (problems.size > 0) throw new ConfigError([...problems]);
  return settings as Settings<Readers>;
};
