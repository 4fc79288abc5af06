import type { Duplex } from "node:stream";
import * as zlib from "node:zlib";
import { UsageError } from "../exit-code.ts";

export const CODINGS = ["plain", "gz", "zst"] as const;
export type Coding = (typeof CODINGS)[number];

/** The end of the names of files with this coding. */
export const suffixOf = (coding: Coding): string => (coding === "plain" ? ".ndjson" : `.ndjson.${coding}`);

/** The quickest levels: text still shrinks to a sixth, and the disk or the line is the bound. */
const FAST = 1;
/** Few large pieces cost less than many small ones. */
const PIECES = { chunkSize: 256 * 1024, highWaterMark: 1024 * 1024 };

const requireZstd = (): void => {
  if (!("createZstdCompress" in zlib)) {
    throw new UsageError(
      `--compress zst: needs Node.js 22.15 or newer, this is ${process.version}; gz works`,
    );
  }
};

/** Null: nothing to do. @throws UsageError when this Node.js cannot */
export const createEncoder = (coding: Coding): Duplex | null => {
  if (coding === "plain") return null;
  if (coding === "gz") return zlib.createGzip({ ...PIECES, level: FAST });
  requireZstd();
  return zlib.createZstdCompress({ ...PIECES, params: { [zlib.constants.ZSTD_c_compressionLevel]: FAST } });
};

/** As `createEncoder`. */
export const createDecoder = (coding: Coding): Duplex | null => {
  if (coding === "plain") return null;
  if (coding === "gz") return zlib.createGunzip();
  requireZstd();
  return zlib.createZstdDecompress();
};
