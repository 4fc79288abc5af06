import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Time for the next request on a kept connection while the server closes. */
const LAST_REQUEST_MS = 2_000;

type Connection = {
  /** Responses that have not ended, the one that is being sent first: requests may be pipelined. */
  readonly open: Set<ServerResponse>;
  timer?: NodeJS.Timeout;
};

/**
 * Keeps idle connections for two seconds after the close, so that requests on their way are answered with
 * `Connection: close` (RFC 9112, 9.6).
 */
export const createKeptConnections = (server: Server) => {
  const connections = new Map<Socket, Connection>();
  let closing = false;

  /** @param isLast whether a part of a request is not waited for once more */
  const closeLater = (socket: Socket, connection: Connection, isLast = false): void => {
    const { bytesRead } = socket;
    const closeWhenQuiet = (): void => {
      if (connection.open.size > 0) return;
      if (isLast || socket.bytesRead === bytesRead) socket.destroy();
      else closeLater(socket, connection, true);
    };
    clearTimeout(connection.timer);
    // What has arrived while this process was busy is read before the immediate runs.
    connection.timer = setTimeout(() => setImmediate(closeWhenQuiet), LAST_REQUEST_MS);
  };

  server.on("connection", (socket) => {
    const connection: Connection = { open: new Set() };
    connections.set(socket, connection);
    socket.once("close", () => {
      connections.delete(socket);
      clearTimeout(connection.timer);
    });
  });
  // `close` calls this once.
  server.closeIdleConnections = () => {
    closing = true;
    for (const [socket, connection] of connections)
      if (connection.open.size === 0) closeLater(socket, connection);
  };

  return {
    count: (): number => connections.size,
    /** The response that is being sent or made on a connection; undefined: none. */
    responseOn: (socket: Socket): ServerResponse | undefined =>
      connections.get(socket)?.open.values().next().value,
    /** Call it at the begin of each request. */
    begin: (response: ServerResponse): void => {
      const { socket } = response.req;
      const connection = connections.get(socket);
      if (connection === undefined) return;
      clearTimeout(connection.timer);
      connection.open.add(response);
      if (closing) response.setHeader("connection", "close");
      response.once("close", () => {
        connection.open.delete(response);
        if (closing && connection.open.size === 0 && !socket.destroyed) closeLater(socket, connection);
      });
    },
  };
};
