import { createRequire } from "node:module";

/** The requests to one broker, in the part of kafkajs that its types leave out. */
type RequestQueue = {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
};

/**
 * Keeps kafkajs 2.2.4 from setting a timer when no request waits. Its delay would be negative, of which Node 24
 * warns, and it would come back every millisecond for as long as the connection lives. A second call does
 * nothing.
 */
export const checkRequestsOnlyWhenNeeded = (): void => {
  const require = createRequire(import.meta.url);
  const { prototype } = require("kafkajs/src/network/requestQueue/index.js") as { prototype: RequestQueue };
  const schedule = prototype.scheduleCheckPendingRequests;
  if (schedule.name === "scheduleWhenNeeded") return;
  prototype.scheduleCheckPendingRequests = function scheduleWhenNeeded() {
    if (this.pending.length > 0) schedule.call(this);
  };
};
