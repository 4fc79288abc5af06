import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";

export type Passing = {
  readonly statement: string;
  send(origin: string): Promise<Answered>;
};

export type Answered = { to(response: ServerResponse): void };

export const readPassing = async (request: IncomingMessage): Promise<Passing> => {
  const body = await buffer(request);
  const address = decodeURIComponent((request.url ?? "").replaceAll("+", " "));
  return {
    statement: `${address} ${body.toString()}`,
    send: async (origin) => {
      const headers = new Headers();
      for (const name of ["authorization", "content-type", "content-encoding"]) {
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
      const content = Buffer.from(await answer.arrayBuffer());
      return {
        to: (response) => {
          response.writeHead(answer.status, Object.fromEntries(kept));
          response.end(content);
        },
      };
    },
  };
};
