import { expect, it } from "vitest";
import { chooseCoding } from "./compression.ts";

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
