import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { renderError } from "./api-error.ts";
import { requestIdOf } from "./request-id.ts";

type ParserError = Error & { readonly code?: string };

const MESSAGES: Readonly<Record<string, readonly [status: number, message: string]>> = {
  HPE_HEADER_OVERFLOW: [431, "The request header is too large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "The request did not arrive in time"],
};

/**
 * Answers, with the error body of the specification, bytes that never became a request, and closes.
 * @param answering whether a response is on its way: nothing may be written into it
 */
export const answerClientError = (error: ParserError, socket: Duplex, answering: boolean): void => {
  if (answering || error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, message] = MESSAGES[error.code ?? ""] ?? [400, "The request is not valid HTTP"];
  const body = renderError({ type: "bad_request", message, details: null });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "cache-control: private, no-store",
    `x-request-id: ${requestIdOf(undefined)}`,
    "connection: close",
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
};
