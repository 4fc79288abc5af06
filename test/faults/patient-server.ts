/** Loaded with `--import`: no request timeout, since a loaded machine reads so late that it would answer 408. */
import { Server } from "node:http";

for (const name of ["headersTimeout", "requestTimeout"]) {
  Object.defineProperty(Server.prototype, name, { get: () => 0, set: () => undefined });
}
