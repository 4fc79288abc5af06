import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Answer = (response: ServerResponse, request: IncomingMessage) => void;

export type TestServer = {
  readonly baseUrl: string;
  readonly asked: string[];
  readonly headers: IncomingMessage["headers"][];
  close(): Promise<void>;
};

/** The last answer repeats. */
export const startServer = async (...answers: Answer[]): Promise<TestServer> => {
  const asked: string[] = [];
  const headers: IncomingMessage["headers"][] = [];
  const server = createServer((request, response) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)];
    asked.push(request.url ?? "");
    headers.push(request.headers);
    request.resume();
    response.setHeader("content-type", request.headers.accept ?? "application/json");
    answer?.(response, request);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/api`,
    asked,
    headers,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};

export const raw =
  (status: number, type: string, body: string, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, { "content-type": type, ...headers });
    response.end(body);
  };

export const LINES = "application/x-ndjson";

export const json = (value: unknown, headers: Record<string, string> = {}): Answer =>
  raw(200, "application/json", JSON.stringify(value), headers);

export const error = (
  status: number,
  type: string,
  headers: Record<string, string> = {},
  details: string | null = null,
): Answer =>
  raw(status, "application/json", JSON.stringify({ errors: [{ type, message: "no", details }] }), {
    "x-request-id": "r-1",
    ...headers,
  });

export const page = (ids: readonly string[], next: string | null): Answer =>
  json({ data: ids.map((_id) => ({ _id })), meta: { next_page_uri: next } });

export const lines =
  (records: readonly object[], trailer: object | "broken"): Answer =>
  (response) => {
    response.writeHead(200, { "content-type": LINES });
    const text = records.map((record) => `${JSON.stringify(record)}\n`).join("");
    if (trailer === "broken") {
      response.write(`${text}{"_id":"hal`, () => response.destroy());
    } else {
      response.end(`${text}${JSON.stringify({ trailer })}\n`);
    }
  };
