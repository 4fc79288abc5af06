import type { ServerResponse } from "node:http";
import type { Readable, Transform } from "node:stream";
import { ServiceError } from "@conversation-export/runtime";
import { ApiError } from "../http/api-error.ts";
import type { SweepBuffers } from "./buffer-sweep.ts";
import { endEncoder } from "./compression.ts";

/** Unless `complete`, a reset, so that no client takes the page for whole. */
export type PageEnd =
  | "complete"
  | "client_gone"
  | "client_stalled"
  | "client_not_allowed"
  | "warehouse_stalled"
  | "warehouse_failed"
  | "encoding_failed";

/** `bytes`: after compression. */
export type PageOutcome = { end: PageEnd; bytes: number; error?: unknown };

/** A slower client would hold a slot for nothing. Bytes count once the buffers of a socket, some 300 kB, have drained. */
const LEAST_BYTES = 16 * 1024;

/** An error before the first byte rejects; a later one resets the connection. */
export const streamPage = (deps: {
  response: ServerResponse;
  records: Readable;
  head: string;
  tail: () => string;
  encoder?: Transform | undefined;
  idleMs: number;
  lost: AbortSignal;
  sweep: SweepBuffers;
  begin: () => void;
}): Promise<PageOutcome> =>
  new Promise((resolve, reject) => {
    const { response, records, head, tail, encoder, idleMs, lost, sweep, begin } = deps;
    const sink = encoder ?? response;
    let begun = false;
    let ended = false;
    let settled = false;
    let bytes = 0;

    const settle = (end: PageEnd, error?: unknown): void => {
      if (settled) return;
      settled = true;
      clearInterval(pace);
      sink.off("drain", resume);
      lost.removeEventListener("abort", lose);
      records.destroy();
      encoder?.destroy();
      resolve(error === undefined ? { end, bytes } : { end, bytes, error });
    };
    const fail = (end: PageEnd, error: Error): void => {
      if (settled) return;
      if (!begun && end !== "client_gone") {
        settled = true;
        clearInterval(pace);
        records.destroy();
        encoder?.destroy();
        reject(error);
        return;
      }
      settle(end, error);
      breakOff(response);
    };
    const count = (chunk: string | Buffer): void => {
      bytes += Buffer.byteLength(chunk);
    };
    const write = (chunk: string | Buffer): boolean => {
      if (encoder === undefined) count(chunk);
      return sink.write(chunk);
    };
    let taken = 0;
    const pace = setInterval(() => {
      const before = taken;
      taken = response.socket?.bytesWritten ?? 0;
      if (response.writableNeedDrain && taken - before < LEAST_BYTES) {
        const what = `no buffer drained in ${idleMs} ms`;
        fail("client_stalled", new ServiceError("client_stalled", what, { retryable: true }));
      }
    }, idleMs);
    const start = (): void => {
      if (begun) return;
      begun = true;
      begin();
      encoder?.on("data", count).pipe(response);
      if (head !== "") write(head);
    };
    const resume = (): void => {
      records.resume();
    };
    const lose = (): void =>
      fail(lost.reason instanceof ApiError ? "client_not_allowed" : "warehouse_failed", lost.reason as Error);

    records.on("data", (chunk: Buffer) => {
      if (settled) return;
      start();
      if (!write(chunk)) records.pause();
      sweep(chunk.length);
    });
    records.once("end", () => {
      if (settled) return;
      ended = true;
      start();
      const last = tail();
      if (encoder === undefined) {
        count(last);
        response.end(last);
      } else endEncoder(encoder, last);
    });
    // Stays attached: a destroyed query may still emit an error.
    records.on("error", (error) => fail("warehouse_failed", error));
    records.once("close", () => {
      if (!ended) fail("warehouse_failed", new Error("the records ended early"));
    });
    sink.on("drain", resume);
    encoder?.on("error", (error) => fail("encoding_failed", error));
    response.once("finish", () => settle("complete"));
    response.once("close", () => settle("client_gone"));
    response.on("error", () => settle("client_gone"));
    // The socket's timer also counts bytes of a buffer that drains slowly.
    response.setTimeout(idleMs, () => {
      const side =
        response.writableNeedDrain || sink.writableNeedDrain || ended
          ? "client_stalled"
          : "warehouse_stalled";
      fail(side, new ServiceError(side, `no progress for ${idleMs} ms`, { retryable: true }));
    });
    lost.addEventListener("abort", lose, { once: true });
    if (response.destroyed) settle("client_gone");
    else if (lost.aborted) lose();
  });

// A reset, because HTTP/1.0 clients take a close for the end of the body.
const breakOff = (response: ServerResponse): void => {
  if (response.socket !== null && "resetAndDestroy" in response.socket) response.socket.resetAndDestroy();
  else response.destroy();
};
