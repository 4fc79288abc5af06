import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listen } from "../system/listen.ts";
import { readPassing } from "./pass-on.ts";
import { throughPort } from "./through-port.ts";

export async function startHoldingProxy(target: string, text: string) {
  const { origin } = new URL(target);
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const seen: string[] = [];
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const passing = await readPassing(request);
    seen.push(passing.statement);
    if (passing.statement.includes(text)) {
      reached.resolve();
      await released.promise;
    }
    (await passing.send(origin)).to(response);
  };
  const server = createServer((request, response) => {
    forward(request, response).catch(() => response.destroy());
  });
  const { port, close } = await listen(server);
  return {
    url: throughPort(target, port),
    reached: reached.promise,
    release: () => released.resolve(),
    count: (part: string): number => seen.filter((one) => one.includes(part)).length,
    close: async (): Promise<void> => {
      released.resolve();
      await close();
    },
  };
}
