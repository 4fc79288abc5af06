import { createHash } from "node:crypto";
import { request } from "node:http";
import type { Readable } from "node:stream";

export const open = (url: string, headers: Readonly<Record<string, string>>): Promise<Readable> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { headers }, (response) => {
      if (response.statusCode === 200) resolve(response);
      else reject(new Error(`${response.statusCode} for ${url}`));
    });
    sent.on("error", reject);
    sent.end();
  });

/** Returns the last 500 bytes, to check how the answer ended. */
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

/** Hashes only the first `most` bytes. */
export const hashed = async (
  body: Readable,
  most = Infinity,
): Promise<{ readonly bytes: number; readonly digest: string; readonly end: string }> => {
  const hash = createHash("sha1");
  let left = most;
  const { bytes, end } = await drain(body, (chunk) => {
    hash.update(chunk.subarray(0, left));
    left -= Math.min(left, chunk.length);
  });
  return { bytes, digest: hash.digest("hex"), end };
};
