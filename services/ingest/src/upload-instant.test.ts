import { expect, it } from "vitest";
import type { LandingGap } from "./landing-gap.ts";
import { createUploads, staleUpload } from "./upload-instant.ts";

const MINUTE = 60_000;
const TICKET = { notAfter: 1, uploadFrom: 0 };
const { signal } = new AbortController();

const startUploads = (gap: LandingGap | null = null) => {
  const clock = { now: 1_000, ticket: TICKET };
  const stamped: number[] = [];
  const uploads = createUploads({
    gate: { untilOpen: () => Promise.resolve(clock.ticket) },
    gap,
    uploadTime: () => clock.now * 1_000,
  });
  const begin = () => uploads.begin({ fillUpload: (instant) => stamped.push(instant) });
  return { clock, stamped, uploads, begin };
};

it("stamps the present instant into the rows", async () => {
  const { clock, stamped, begin } = startUploads();
  const upload = begin();
  clock.now = 2_000;
  await upload.stamp(signal);
  expect([stamped, upload.instant()]).toEqual([[2_000_000], 2_000_000]);
});

it("stamps behind the note of the gap, with the instant after it", async () => {
  const { clock, stamped, begin } = startUploads({
    cover: () => {
      clock.now = 5_000;
      return Promise.resolve();
    },
  });
  await begin().stamp(signal);
  expect(stamped).toEqual([5_000_000]);
});

it("gives no leave to write with an instant that is more than a minute old", async () => {
  const { clock, begin } = startUploads();
  const upload = begin();
  clock.now += MINUTE;
  expect(await upload.ticket(signal)).toBe(TICKET);
  clock.now += 1;
  await expect(upload.ticket(signal)).rejects.toBe(staleUpload);
  await upload.stamp(signal);
  expect(await upload.ticket(signal)).toBe(TICKET);
});

it("gives no leave to write with an instant that readers may have passed", async () => {
  const { clock, begin } = startUploads();
  const upload = begin();
  clock.ticket = { notAfter: 1, uploadFrom: 1_000_001 };
  await expect(upload.ticket(signal)).rejects.toBe(staleUpload);
  clock.now = 2_000;
  await upload.stamp(signal);
  expect(await upload.ticket(signal)).toBe(clock.ticket);
});

it("knows the oldest instant of those that have not ended", () => {
  const { clock, uploads, begin } = startUploads();
  expect(uploads.oldest()).toBe(null);
  const first = begin();
  clock.now = 3_000;
  const second = begin();
  expect(uploads.oldest()).toBe(1_000_000);
  first.end();
  expect(uploads.oldest()).toBe(3_000_000);
  second.end();
  expect(uploads.oldest()).toBe(null);
});
