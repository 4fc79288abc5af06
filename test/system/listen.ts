import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";

export type Listening = {
  readonly port: number;
  /** Connections of HTTP are broken. */
  close(): Promise<void>;
};

/** On a free port of this machine. */
export const listen = async (
  server: Server & { readonly closeAllConnections?: () => void },
): Promise<Listening> => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections?.();
      await closed;
    },
  };
};
