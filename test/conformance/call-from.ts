import { request } from "node:http";
import { text } from "node:stream/consumers";
import type { Answer } from "./call.ts";

/** From a loopback address with rate limits of its own. */
export const callFrom = (
  localAddress: string,
  url: string,
  options: {
    readonly method?: string;
    readonly body?: unknown;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<Pick<Answer, "status" | "headers" | "text" | "body">> => {
  const { method = "GET", body } = options;
  const payload = body === undefined ? "" : JSON.stringify(body);
  const headers = { ...(body !== undefined && { "content-type": "application/json" }), ...options.headers };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, localAddress, headers, agent: false }, (response) => {
      text(response).then((received) => {
        const isJson = response.headers["content-type"] === "application/json" && received !== "";
        resolve({
          status: response.statusCode ?? 0,
          headers: new Headers(
            Object.entries(response.headers).map(([name, value]): [string, string] => [name, String(value)]),
          ),
          text: received,
          body: isJson ? (JSON.parse(received) as unknown) : undefined,
        });
      }, reject);
    });
    sent.on("error", reject).end(payload);
  });
};
