/** Loaded with `--import`: HTTP servers wait for requests a third of the set time. */
import { Server } from "node:http";

const timeouts = new WeakMap<Server, number>();

Object.defineProperty(Server.prototype, "requestTimeout", {
  get(this: Server): number {
    return (timeouts.get(this) ?? 0) / 3;
  },
  set(this: Server, ms: number) {
    timeouts.set(this, ms);
  },
});
