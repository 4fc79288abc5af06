/**
 * Loaded with `--import`: HTTP servers of the process wait for a request for as long as it takes. On a loaded
 * machine a server may come to read a request so late that it would answer 408.
 */
import { Server } from "node:http";

for (const name of ["headersTimeout", "requestTimeout"]) {
  Object.defineProperty(Server.prototype, name, { get: () => 0, set: () => undefined });
}
