import { join } from "node:path";
import { preparePythonTools } from "../outside/python-tools.ts";

/** Installs schemathesis and the clients once: the program, and the folder of the clients' Python. */
export const prepareTools = async () => ({
  schemathesis: join(await preparePythonTools("contract"), "schemathesis"),
  clients: await preparePythonTools("clients"),
});
