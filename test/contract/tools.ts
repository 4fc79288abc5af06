import { join } from "node:path";
import { preparePythonTools } from "../outside/python-tools.ts";

/** Installs schemathesis, the clients and the readers of lines once: the program, and the folders of their Pythons. */
export const prepareTools = async () => ({
  schemathesis: join(await preparePythonTools("contract"), "schemathesis"),
  clients: await preparePythonTools("clients"),
  readers: await preparePythonTools("readers"),
});
