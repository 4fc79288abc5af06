import type { IncomingMessage, ServerResponse } from "node:http";

const LINGER_MS = 2_000;

/** Closing at once would lose the answer (RFC 9112, 9.6). */
export const lingerBeforeClose = (request: IncomingMessage): void => {
  const { socket } = request;
  // node:http calls this when the answer has been written.
  socket.destroySoon = () => {
    if (socket.destroyed) return;
    socket.end();
    // Reading the body was paused, and the socket with it.
    request.resume();
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once("close", () => clearTimeout(timer));
  };
};

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
