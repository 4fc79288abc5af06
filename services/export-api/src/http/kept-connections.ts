import type { Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** Time for the next request on a kept connection while the server closes. */
const LAST_REQUEST_MS = 2_000;

/**
 * Counts the connections of a server and ends the kept ones when it closes. Node would close them at once, and
 * a request that is on its way would be lost. Here each stays for two seconds after the close or its last
 * answer, in which a request is still served: its answer must say `Connection: close` (RFC 9112, 9.6), as
 * Fastify's do then.
 */
export const createKeptConnections = (server: Server) => {
  /** The latest response of each open connection. */
  const responses = new Map<Duplex, ServerResponse | undefined>();
  let closing = false;

  const isIdle = (socket: Duplex): boolean => responses.get(socket)?.closed ?? true;

  const closeLater = (socket: Duplex): void => {
    setTimeout(() => {
      if (isIdle(socket)) socket.destroy();
    }, LAST_REQUEST_MS);
  };

  server.on("connection", (socket) => {
    responses.set(socket, undefined);
    socket.once("close", () => responses.delete(socket));
  });
  // `close` calls this once.
  server.closeIdleConnections = () => {
    closing = true;
    for (const socket of responses.keys()) if (isIdle(socket)) closeLater(socket);
  };

  return {
    count: (): number => responses.size,
    /** The latest response on a connection, perhaps ended. */
    responseOn: (socket: Duplex): ServerResponse | undefined => responses.get(socket),
    /** Call it at the begin of each request. */
    begin: (response: ServerResponse): void => {
      const { socket } = response.req;
      if (responses.has(socket)) responses.set(socket, response);
      response.once("close", () => {
        if (closing && !socket.destroyed) closeLater(socket);
      });
    },
  };
};
