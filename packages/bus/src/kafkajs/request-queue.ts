import { internals } from "./internals.ts";

type RequestQueue = {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
};

/** Otherwise kafkajs sets a timer with a negative delay each millisecond. */
export const checkRequestsOnlyWhenNeeded = (): void => {
  const { prototype } = internals("network/requestQueue/index") as { prototype: RequestQueue };
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function scheduleWhenNeeded() {
    if (this.pending.length > 0) schedule.call(this);
  };
};
