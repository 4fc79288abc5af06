import { join } from "node:path";
import { preparePythonTools } from "../support/run/python-tools.ts";

/** Installs schemathesis, once; gives its path. */
export const prepareTools = async (): Promise<string> =>
  join(await preparePythonTools("contract"), "schemathesis");
