import type { Duplex } from "node:stream";
import * as zlib from "node:zlib";
import { UsageError } from "../exit-code.ts";

export const CODINGS = ["plain", "gz", "zst"] as const;
export type Coding = (typeof CODINGS)[number];

export const suffixOf = (coding: Coding): string => (coding === "plain" ? ".ndjson" : `.ndjson.${coding}`);

/** Still shrinks text to a sixth; disk and network are the limit. */
const FAST = 1;
const PIECES = { chunkSize: 256 * 1024, highWaterMark: 1024 * 1024 };

const requireZstd = (): void => {
  if (!("createZstdCompress" in zlib)) {
    throw new UsageError(
      `--compress zst: needs Node.js 22.15 or newer, this is ${process.version}; gz works`,
    );
  }
};

/** Null: plain. @throws UsageError if Node.js lacks the coding */
export const createEncoder = (coding: Coding): Duplex | null => {
  if (coding === "plain") return null;
  if (coding === "gz") return zlib.createGzip({ ...PIECES, level: FAST });
  requireZstd();
  return zlib.createZstdCompress({ ...PIECES, params: { [zlib.constants.ZSTD_c_compressionLevel]: FAST } });
};

export const createDecoder = (coding: Coding): Duplex | null => {
  if (coding === "plain") return null;
  if (coding === "gz") return zlib.createGunzip();
  requireZstd();
  return zlib.createZstdDecompress();
};
