import type { ServerResponse } from "node:http";

/**
 * Resets a connection whose caller has not taken the whole answer within `ms`, however slowly it reads on.
 * For answers that are sent from memory; pages have rules of their own.
 */
export const takeWithin = (response: ServerResponse, ms: number): void => {
  const start = (): void => {
    const timer = setTimeout(() => response.socket?.resetAndDestroy(), ms);
    response.once("close", () => clearTimeout(timer));
  };
  // A pipelined request is answered when the one before it has been.
  if (response.socket === null) response.once("socket", start);
  else start();
};
