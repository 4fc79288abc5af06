import type { IncomingMessage } from "node:http";
import type { Transform } from "node:stream";
import { constants, createBrotliCompress, createGzip, createZstdCompress } from "node:zlib";
import Negotiator from "negotiator";

/** In the order in which they are taken when the caller likes them equally. */
const CODINGS = ["zstd", "br", "gzip"] as const;
export type Coding = (typeof CODINGS)[number];

/** The published types do not know the second parameter. */
type Preferring = {
  encoding(available: readonly string[], options: { preferred: readonly string[] }): string | undefined;
};

/** Levels at which a page is not held up: the next ones cost several times the time for a few percent. */
const ZSTD_LEVEL = 3;
const BROTLI_QUALITY = 4;
const GZIP_LEVEL = 4;

/** The coding for a response to this request (RFC 9110, 12.5.3); null: as it is. */
export const chooseCoding = (request: Pick<IncomingMessage, "headers">): Coding | null => {
  // Without the header a caller may not understand any coding.
  if (request.headers["accept-encoding"] === undefined) return null;
  const negotiator: Preferring = new Negotiator(request);
  const chosen = negotiator.encoding([...CODINGS, "identity"], { preferred: CODINGS });
  return CODINGS.find((coding) => coding === chosen) ?? null;
};

/** Compresses what is written to it as it comes. */
export const createEncoder = (coding: Coding): Transform => {
  switch (coding) {
    case "zstd":
      return createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL } });
    case "br":
      return createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } });
    case "gzip":
      return createGzip({ level: GZIP_LEVEL });
  }
};
