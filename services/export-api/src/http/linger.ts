import type { IncomingMessage } from "node:http";

const LINGER_MS = 2_000;

/**
 * For an answer that is sent before the whole body has arrived, on a connection that closes with it: closing
 * at once would reset the connection and lose the answer (RFC 9112, 9.6). The rest of the body is discarded
 * for at most two seconds.
 */
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
