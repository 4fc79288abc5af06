import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

const LAST_REQUEST_MS = 2_000;

type Connection = {
  /** Of pipelined requests the one being answered first. */
  readonly open: Set<ServerResponse>;
  timer?: NodeJS.Timeout;
};

/** Requests on their way get `Connection: close` (RFC 9112, 9.6). */
export const createKeptConnections = (server: Server) => {
  const connections = new Map<Socket, Connection>();
  let closing = false;

  /** `isLast`: a partial request gets no more time. */
  const closeLater = (socket: Socket, connection: Connection, isLast = false): void => {
    const { bytesRead } = socket;
    const closeWhenQuiet = (): void => {
      if (connection.open.size > 0) return;
      if (isLast || socket.bytesRead === bytesRead) socket.destroy();
      else closeLater(socket, connection, true);
    };
    clearTimeout(connection.timer);
    // Data that arrived while the process was busy is read before.
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
    responseOn: (socket: Socket): ServerResponse | undefined =>
      connections.get(socket)?.open.values().next().value,
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
