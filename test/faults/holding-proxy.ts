import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** A proxy before ClickHouse that holds requests with `text` back until `release`. */
export async function startHoldingProxy(target: string, text: string) {
  const { origin, pathname, username, password } = new URL(target);
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const seen: string[] = [];
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request);
    const statement = `${decodeURIComponent((request.url ?? "").replaceAll("+", " "))} ${body.toString()}`;
    seen.push(statement);
    if (statement.includes(text)) {
      reached.resolve();
      await released.promise;
    }
    const headers = new Headers();
    for (const name of ["authorization", "content-type"]) {
      const value = request.headers[name];
      if (typeof value === "string") headers.set(name, value);
    }
    const answer = await fetch(`${origin}${request.url}`, {
      method: request.method ?? "POST",
      headers,
      body: body.length === 0 ? null : body,
    });
    const kept = [...answer.headers].filter(
      ([name]) => name.startsWith("x-clickhouse") || name === "content-type",
    );
    response.writeHead(answer.status, Object.fromEntries(kept));
    response.end(Buffer.from(await answer.arrayBuffer()));
  };
  const server = createServer((request, response) => {
    forward(request, response).catch(() => response.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${username}:${password}@127.0.0.1:${port}${pathname}`,
    reached: reached.promise,
    release: () => released.resolve(),
    /** Requests with a text so far. */
    count: (part: string): number => seen.filter((one) => one.includes(part)).length,
    close: async (): Promise<void> => {
      released.resolve();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
