import { ConfigError } from "../errors.ts";

/**
 * Calls `read`. On a ConfigError it prints the wrong variables on stderr, without a stack, and exits with 1.
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
