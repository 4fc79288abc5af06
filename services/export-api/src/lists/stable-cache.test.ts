import type { Stable } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { createStableCache } from "./stable-cache.ts";

const SECOND = 1_000_000;

const setUp = () => {
  let clock = 0;
  let answer: () => Promise<Stable> = async () => ({ until: 0, watermarks: {} });
  const read = createStableCache({ load: () => answer(), maxAgeMs: 1_000, clock: () => clock });
  return {
    read,
    readLater: (until: number, messages?: number) => {
      clock += 1_000;
      answer = async () => ({ until, watermarks: messages === undefined ? {} : { messages } });
      return read("messages");
    },
    fails: (ms: number) => {
      clock += ms;
      answer = () => Promise.reject(new Error("away"));
    },
  };
};

it("knows no instant before one was stored", async () => {
  const { read } = setUp();
  expect(await read("messages")).toEqual({ until: undefined, watermark: undefined });
});

it("gives the stable instant, and the watermark of the list when there is one", async () => {
  const { read, readLater } = setUp();
  expect(await readLater(5 * SECOND)).toEqual({ until: 5 * SECOND, watermark: undefined });
  const both = { until: 6 * SECOND, watermark: "1970-01-01T00:00:04.000000Z" };
  expect(await readLater(6 * SECOND, 4 * SECOND)).toEqual(both);
  expect(await read("conversations")).toEqual({ until: 6 * SECOND, watermark: undefined });
});

it("keeps what it knows while ClickHouse does not answer, and gives nothing that was stable minutes ago", async () => {
  const { read, readLater, fails } = setUp();
  const known = await readLater(6 * SECOND, 4 * SECOND);
  fails(1_000);
  expect(await read("messages")).toEqual(known);
  fails(60_000);
  expect(await read("messages")).toEqual({ until: undefined, watermark: undefined });
});
