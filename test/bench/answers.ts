import { request } from "node:http";
import type { Readable } from "node:stream";
import { formatTimestampZ } from "@conversation-export/domain";
import { WINDOW_END, WINDOW_MICROS, WINDOW_START } from "./window-data.ts";

/** The query of a page of the measured window from a place on, 0 to 1. */
export const windowQuery = (place: number, pageSize: number): string => {
  const since = formatTimestampZ(WINDOW_START + Math.floor(WINDOW_MICROS * place));
  return `created_since=${since}&created_to=${formatTimestampZ(WINDOW_END)}&page_size=${pageSize}`;
};

/** Opens the body of an answer, still encoded. */
export const open = (url: string, headers: Readonly<Record<string, string>>): Promise<Readable> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { headers }, (response) => {
      if (response.statusCode === 200) resolve(response);
      else reject(new Error(`${response.statusCode} for ${url}`));
    });
    sent.on("error", reject);
    sent.end();
  });

/** Reads to the end. Returns the number of bytes and the last 500, to check how it ended. */
export const drain = async (
  body: Readable,
  onBytes: (bytes: Buffer) => void = () => {},
): Promise<{ bytes: number; end: string }> => {
  let bytes = 0;
  let last: Buffer = Buffer.alloc(0);
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    last = chunk;
    onBytes(chunk);
  }
  return { bytes, end: last.subarray(-500).toString() };
};
