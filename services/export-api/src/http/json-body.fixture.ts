import { promisify } from "node:util";
import type { ApiClient } from "@conversation-export/warehouse";
import Fastify, { type FastifyError } from "fastify";
import { answerTo, renderError } from "./api-error.ts";
import { listen } from "./app.fixture.ts";
import type { Endpoint } from "../operations/endpoint.ts";
import { lingerBeforeClose } from "./answer-end.ts";

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
  readonly details: string;
};

export type Served = {
  readonly port: number;
  readonly url: string;
  connections(): Promise<number>;
  post(
    path: string,
    body: unknown,
    options?: { clientId?: string; headers?: Record<string, string> },
  ): Promise<Answer>;
  get(path: string, clientId?: string): Promise<Answer>;
};

const readAnswer = async (response: Response): Promise<Answer> => {
  const body: unknown = await response.json();
  const [error] = (body as { errors?: { details: string | null }[] }).errors ?? [];
  return { status: response.status, headers: response.headers, body, details: error?.details ?? "" };
};

/** A header names the client instead of a key. */
export const serve = async (endpoints: readonly Endpoint[]): Promise<Served> => {
  const app = Fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const { answer } = answerTo(error);
    if (answer.headers["connection"] === "close") lingerBeforeClose(request.raw);
    return reply
      .code(answer.status)
      .headers({ ...answer.headers, "content-type": "application/json" })
      .send(Buffer.from(renderError(answer)));
  });
  for (const endpoint of endpoints) {
    for (const url of endpoint.paths) {
      app.route({
        method: endpoint.method,
        url,
        handler: async (request, reply) => {
          const clientId = String(request.headers["x-client"] ?? "acme");
          const client = { clientId } as ApiClient;
          const { signal } = new AbortController();
          const access = { lost: signal, check: () => Promise.resolve(), end: () => undefined };
          await endpoint.serve({ request, reply, client, access, signal });
        },
      });
    }
  }
  const port = await listen(app);
  const url = `http://127.0.0.1:${port}`;
  return {
    port,
    url,
    connections: promisify(app.server.getConnections.bind(app.server)),
    post: async (path, body, { clientId = "acme", headers = {} } = {}) =>
      readAnswer(
        await fetch(url + path, {
          method: "POST",
          body: typeof body === "string" ? body : JSON.stringify(body),
          headers: { "content-type": "application/json", "x-client": clientId, ...headers },
        }),
      ),
    get: async (path, clientId = "acme") =>
      readAnswer(await fetch(url + path, { headers: { "x-client": clientId } })),
  };
};
