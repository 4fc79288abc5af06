import type { ServerResponse } from "node:http";

/** Resets a connection whose caller has not read the whole answer within `ms`; for answers from memory. */
export const takeWithin = (response: ServerResponse, ms: number): void => {
  const start = (): void => {
    const timer = setTimeout(() => response.socket?.resetAndDestroy(), ms);
    response.once("close", () => clearTimeout(timer));
  };
  // A pipelined request is answered when the one before it has been.
  if (response.socket === null) response.once("socket", start);
  else start();
};
