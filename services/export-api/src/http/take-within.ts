import type { ServerResponse } from "node:http";

/** For answers from memory. */
export const takeWithin = (response: ServerResponse, ms: number): void => {
  const start = (): void => {
    const timer = setTimeout(() => response.socket?.resetAndDestroy(), ms);
    response.once("close", () => clearTimeout(timer));
  };
  // A pipelined response gets its socket after the one before.
  if (response.socket === null) response.once("socket", start);
  else start();
};
