import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CODINGS } from "./coding.ts";
import { createSegmentWriter, temporaryOf } from "./segment-file.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "segment-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

it.runIf(existsSync("/dev/full")).each(CODINGS)("says that the disk is full with %s", async (coding) => {
  symlinkSync("/dev/full", join(root, temporaryOf("a")));
  const writer = createSegmentWriter(root, "a", coding);
  const write = async (): Promise<void> => {
    for (let at = 0; at < 50; at += 1) await writer.write(randomBytes(100_000), 1);
    await writer.finish();
  };
  await expect(write()).rejects.toMatchObject({ code: "ENOSPC" });
  await writer.abort();
});

it("leaves the file of another process alone when it must not publish its own", async () => {
  writeFileSync(join(root, "a"), "theirs");
  const refuse = () => Promise.reject(new Error("taken over"));
  const writer = createSegmentWriter(root, "a", "plain", refuse);
  await writer.write(Buffer.from("ours\n"), 1);
  await expect(writer.finish()).rejects.toThrow("taken over");
  await writer.abort();
  expect(readFileSync(join(root, "a"), "utf8")).toBe("theirs");
});
