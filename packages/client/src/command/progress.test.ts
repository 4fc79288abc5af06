import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { createProgress, progressLine } from "./progress.ts";
import type { Note } from "./pull.ts";

const NOTE: Note = {
  list: "messages",
  lines: 12_000,
  deletions: 0,
  bytes: 1,
  watermark: null,
  done: 0.5,
  isFirstPass: true,
  isRenewed: false,
};

it("has no rate and no time left before a second has passed", () => {
  for (const seconds of [0, 0.000_2, 0.9])
    expect(progressLine(NOTE, seconds)).toBe("messages: 12,000 records, [############............] 50 %");
  expect(progressLine(NOTE, 10)).toBe(
    "messages: 12,000 records, 1,200/s, [############............] 50 %, 10 s left",
  );
});

it("shows what is in a watermark or an error, on a terminal too", () => {
  for (const isTTY of [true, false])
    for (const json of [true, false]) {
      let ms = 0;
      const output = Object.assign(new PassThrough(), { isTTY });
      const progress = createProgress({ output, json, clock: () => (ms += 10_000) });
      const hostile = "a\u001b]0;title\u0007\u009b31m\u202eb";
      progress.update({ ...NOTE, watermark: hostile });
      progress.retry({ error: new Error(hostile), attempt: 2, attempts: 8, waitMs: 400 });
      const text = (output.read() as Buffer).toString().replaceAll("\r\u001b[2K", "");
      expect(text).toMatch(/^[\x20-\x7e\n]+$/);
      expect(text).toContain("\\u009b31m\\u202eb");
    }
});
