import { once } from "node:events";
import { connect } from "node:net";

/** Sends one line to Redis and resolves to the first bytes of the answer. */
export const redisCommand = async (url: string, line: string): Promise<string> => {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port) }, () => socket.write(`${line}\r\n`));
  try {
    const [bytes] = (await once(socket, "data")) as [Buffer];
    return bytes.toString().trim();
  } finally {
    socket.destroy();
  }
};
