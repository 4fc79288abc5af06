import { once } from "node:events";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { expect, it } from "vitest";
import { chooseCoding, createEncoder, endEncoder } from "./compression.ts";
import { countZstdFrames } from "./zstd-frames.fixture.ts";

it.each([
  [undefined, null],
  ["", null],
  ["identity", null],
  ["*", "zstd"],
  ["gzip", "gzip"],
  ["GZIP", "gzip"],
  ["gzip, deflate", "gzip"],
  ["gzip, deflate, br", "br"],
  ["gzip, deflate, br, zstd", "zstd"],
  ["gzip;q=1.0, br;q=0.5", "gzip"],
  ["zstd;q=0, gzip", "gzip"],
  ["deflate", null],
  ["gzip;q=0.5, identity;q=0.9", null],
  ["gzip;q=nonsense", null],
])("Accept-Encoding %j leads to %s", (header, coding) => {
  const headers = header === undefined ? {} : { "accept-encoding": header };
  expect(chooseCoding({ headers })).toBe(coding);
});

it.each([
  ["zstd", zstdDecompressSync],
  ["br", brotliDecompressSync],
  ["gzip", gunzipSync],
] as const)("%s gives back what was written", async (coding, decode) => {
  const encoder = createEncoder(coding);
  const chunks: Buffer[] = [];
  encoder.on("data", (chunk: Buffer) => chunks.push(chunk));
  const text = '{"body":"grüße"},'.repeat(10_000);
  encoder.write(text.slice(0, 777));
  endEncoder(encoder, text.slice(777));
  await once(encoder, "end");
  const body = Buffer.concat(chunks);
  expect(body.length).toBeLessThan(text.length / 10);
  expect(decode(body).toString()).toBe(text);
  if (coding === "zstd") expect(countZstdFrames(body)).toBe(1);
});
