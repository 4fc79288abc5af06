import type { IncomingMessage } from "node:http";

const LINGER_MS = 2_000;

/**
 * For a request that is answered before its body has come, on a connection that closes with the answer: closing at once
 * would reset it under the answer (RFC 9112, section 9.6). What still comes is thrown away for at most two seconds.
 */
export const lingerBeforeClose = (request: IncomingMessage): void => {
  const { socket } = request;
  // What node:http calls when such an answer is out.
  socket.destroySoon = () => {
    if (socket.destroyed) return;
    socket.end();
    // Whoever read the body paused it, and with it the socket.
    request.resume();
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once("close", () => clearTimeout(timer));
  };
};
