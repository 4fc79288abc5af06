import { ConfigError } from "../errors.ts";

export const configOrExit = <Config>(read: () => Config): Config => {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
};
