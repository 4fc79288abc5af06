import { internals } from "./internals.ts";

/** The requests to one broker, in the part of kafkajs that its types leave out. */
type RequestQueue = {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
};

/** Keeps kafkajs from setting a timer with a negative delay each millisecond when no request waits. */
export const checkRequestsOnlyWhenNeeded = (): void => {
  const { prototype } = internals("network/requestQueue/index") as { prototype: RequestQueue };
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function scheduleWhenNeeded() {
    if (this.pending.length > 0) schedule.call(this);
  };
};
