import { ConfigError } from "./errors.ts";

/**
 * What `read` gives. When it throws `ConfigError`, says on stderr which variables are wrong, without a stack,
 * and ends the process with 1.
 */
export const configOrExit = <Config>(read: () => Config): Config => {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
};
