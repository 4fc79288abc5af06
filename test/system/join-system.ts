import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { inject } from "vitest";
import { logFolders } from "./log-folders.ts";
import { connectTo, type RunningSystem, type SystemAddresses } from "./system.ts";

/** No other file may name its clients. */
export const joinSystem = async (): Promise<RunningSystem> => {
  // fetch would time out during the first start.
  const [response] = (await once(get(inject("sharedSystem")), "response")) as [IncomingMessage];
  const body = await text(response);
  if (response.statusCode !== 200) throw new Error(`the shared system did not start: ${body}`);
  const addresses = JSON.parse(body) as SystemAddresses;
  logFolders.set(addresses.logFolder, "shared");
  return connectTo(addresses);
};
