import { connect } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { listen } from "../system/listen.ts";
import type { Identity } from "./certificates.ts";

export type TlsProxy = {
  readonly port: number;
  accepted(): number;
  drop(): void;
  close(): Promise<void>;
};

export const startTlsProxy = async (target: number, { cert, key }: Identity): Promise<TlsProxy> => {
  const open = new Set<TLSSocket>();
  let accepted = 0;
  const drop = (): void => {
    for (const socket of open) socket.destroy();
  };
  const server = createServer({ cert, key }, (socket) => {
    accepted += 1;
    const inner = connect({ host: "127.0.0.1", port: target });
    open.add(socket);
    socket.on("error", () => inner.destroy());
    inner.on("error", () => socket.destroy());
    socket.on("close", () => {
      open.delete(socket);
      inner.destroy();
    });
    inner.on("close", () => socket.destroy());
    socket.pipe(inner).pipe(socket);
  });
  const { port, close } = await listen(server);
  return {
    port,
    accepted: () => accepted,
    drop,
    close: async () => {
      drop();
      await close();
    },
  };
};
