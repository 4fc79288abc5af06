import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { inject } from "vitest";
import { logFolders } from "./log-folders.ts";
import { connectTo, type RunningSystem, type SystemAddresses } from "./system.ts";

/** Connects a file of tests to the shared system. Its clients must be named in no other file. */
export const joinSystem = async (): Promise<RunningSystem> => {
  // Unlike fetch, a plain request waits as long as the first start takes.
  const [response] = (await once(get(inject("sharedSystem")), "response")) as [IncomingMessage];
  const body = await text(response);
  if (response.statusCode !== 200) throw new Error(`the shared system did not start: ${body}`);
  const addresses = JSON.parse(body) as SystemAddresses;
  logFolders.set(addresses.logFolder, "shared");
  return connectTo(addresses);
};
