import { inject } from "vitest";
import { logFolders } from "./log-folders.ts";
import { connectTo, type RunningSystem, type SystemAddresses } from "./system.ts";

/** Connects a file of tests to the shared system. Its clients must be named in no other file. */
export const joinSystem = async (): Promise<RunningSystem> => {
  const response = await fetch(inject("sharedSystem"));
  const text = await response.text();
  if (!response.ok) throw new Error(`the shared system did not start: ${text}`);
  const addresses = JSON.parse(text) as SystemAddresses;
  logFolders.set(addresses.logFolder, "shared");
  return connectTo(addresses);
};
