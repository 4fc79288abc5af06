import { inject } from "vitest";
import { connectTo, type RunningSystem, type SystemAddresses } from "./system.ts";

/** Connects a file of tests to the shared system. Its clients must be named in no other file. */
export const joinSystem = async (): Promise<RunningSystem> => {
  const response = await fetch(inject("sharedSystem"));
  const text = await response.text();
  if (!response.ok) throw new Error(`the shared system did not start: ${text}`);
  return connectTo(JSON.parse(text) as SystemAddresses);
};
