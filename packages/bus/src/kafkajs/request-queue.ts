import { internals } from "./internals.ts";

/** The requests to one broker, in the part of kafkajs that its types leave out. */
type RequestQueue = {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
};

/**
 * Keeps kafkajs from setting a timer when no request waits. Its delay would be negative, of which Node 24
 * warns, and it would come back every millisecond for as long as the connection lives.
 */
export const checkRequestsOnlyWhenNeeded = (): void => {
  const { prototype } = internals("network/requestQueue/index") as { prototype: RequestQueue };
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function scheduleWhenNeeded() {
    if (this.pending.length > 0) schedule.call(this);
  };
};
