import type { IncomingMessage } from "node:http";
import type { Transform } from "node:stream";
import { constants, createBrotliCompress, createGzip, createZstdCompress } from "node:zlib";
import Negotiator from "negotiator";

/** In order of preference. */
const CODINGS = ["zstd", "br", "gzip"] as const;
export type Coding = (typeof CODINGS)[number];

/** The published types lack the second parameter. */
type Preferring = {
  encoding(available: readonly string[], options: { preferred: readonly string[] }): string | undefined;
};

/** The next levels save a few percent for at least a third more time. */
const ZSTD_LEVEL = 3;
const BROTLI_QUALITY = 2;
const GZIP_LEVEL = 1;
const BUFFERS = { chunkSize: 64 * 1024, writableHighWaterMark: 256 * 1024 } as const;

/** RFC 9110, 12.5.3. */
export const chooseCoding = (request: Pick<IncomingMessage, "headers">): Coding | null => {
  // The RFC allows any coding, but clients without the header often understand none.
  if (request.headers["accept-encoding"] === undefined) return null;
  const negotiator: Preferring = new Negotiator(request);
  const chosen = negotiator.encoding([...CODINGS, "identity"], { preferred: CODINGS });
  return CODINGS.find((coding) => coding === chosen) ?? null;
};

export const createEncoder = (coding: Coding): Transform => {
  switch (coding) {
    case "zstd":
      return createZstdCompress({ ...BUFFERS, params: { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL } });
    case "br":
      return createBrotliCompress({
        ...BUFFERS,
        params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY },
      });
    case "gzip":
      return createGzip({ ...BUFFERS, level: GZIP_LEVEL });
  }
};

export const endEncoder = (encoder: Transform, last: string): void => {
  // Ended during a write, Node's encoder appends an empty zstd frame.
  encoder.write(last, (error) => {
    if (!error) encoder.end();
  });
};
