import { once } from "node:events";
import { connect } from "node:net";

export const redisCommand = async (url: string, line: string): Promise<string> => {
  const { hostname: host, port, pathname, username, password } = new URL(url);
  const socket = connect({ host, port: Number(port) });
  const ask = async (command: string): Promise<string> => {
    socket.write(`${command}\r\n`);
    const [bytes] = (await once(socket, "data")) as [Buffer];
    return bytes.toString().trim();
  };
  try {
    if (username !== "") await ask(`AUTH ${username} ${password}`);
    if (pathname.length > 1) await ask(`SELECT ${pathname.slice(1)}`);
    return await ask(line);
  } finally {
    socket.destroy();
  }
};
