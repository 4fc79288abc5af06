import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

/** A string: the reason of a failure. */
type HealthCheck = () => boolean | string;
export type HealthChecks = { readonly live: HealthCheck; readonly ready: HealthCheck };

const text = (response: ServerResponse, status: number, type: string, body: string): void => {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body);
};

export const createHealthServer = (deps: {
  host: string;
  port: number;
  metrics: Metrics;
  checks: HealthChecks;
  log: Logger;
}) => {
  const { host, port, metrics, checks, log } = deps;

  const answerCheck = (response: ServerResponse, check: HealthCheck): void => {
    const result = check();
    if (result === true) text(response, 200, "text/plain", "ok\n");
    else text(response, 503, "text/plain", `${result === false ? "no" : result}\n`);
  };

  const answer = async (request: IncomingMessage, path: string, response: ServerResponse) => {
    const { method } = request;
    if (method !== "GET" && method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return text(response, 405, "text/plain", "method not allowed\n");
    }
    if (path === "/live") return answerCheck(response, checks.live);
    if (path === "/ready") return answerCheck(response, checks.ready);
    if (path === "/metrics") return text(response, 200, metrics.contentType, await metrics.text());
    return text(response, 404, "text/plain", "not found\n");
  };

  const server = createServer((request, response) => {
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    answer(request, path, response).catch((error: unknown) => {
      log.error({ err: error, path }, "health request failed");
      if (response.headersSent) response.destroy();
      else text(response, 500, "text/plain", "error\n");
    });
  });

  return {
    name: "health",
    start: (): Promise<{ port: number }> =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, host, () => {
          server.removeListener("error", reject);
          const bound = (server.address() as AddressInfo).port;
          log.info({ host, port: bound }, "health server listens");
          resolve({ port: bound });
        });
      }),
    stop: (): Promise<void> =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
