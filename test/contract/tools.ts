import { join } from "node:path";
import { preparePythonTools } from "../outside/python-tools.ts";

export const prepareTools = async () => ({
  schemathesis: join(await preparePythonTools("contract"), "schemathesis"),
  clients: await preparePythonTools("clients"),
  readers: await preparePythonTools("readers"),
});
