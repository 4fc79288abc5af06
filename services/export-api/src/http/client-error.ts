import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { answerOf, renderError } from "./api-error.ts";
import type { ErrorName } from "./errors.ts";
import { requestIdOf } from "./request-facts.ts";

type ParserError = Error & { readonly code?: string };

const ANSWERS: Readonly<Record<string, ErrorName>> = {
  HPE_HEADER_OVERFLOW: "HeaderTooLarge",
  ERR_HTTP_REQUEST_TIMEOUT: "RequestTimeout",
};

/** While `answering` a response, nothing may be written into it. */
export const answerClientError = (error: ParserError, socket: Duplex, answering: boolean): void => {
  if (answering || error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const known = ANSWERS[error.code ?? ""];
  const answer =
    known === undefined
      ? answerOf("BadRequest", { message: "The request is not valid HTTP" })
      : answerOf(known);
  const body = renderError(answer);
  const lines = [
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ""}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "cache-control: private, no-store",
    `x-request-id: ${requestIdOf(undefined)}`,
    "connection: close",
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
};
