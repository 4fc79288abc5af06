import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { useRoot } from "../root.fixture.ts";
import { CODINGS } from "./coding.ts";
import { createSegmentWriter, temporaryOf } from "./segment-file.ts";

const path = useRoot();

it.runIf(existsSync("/dev/full")).each(CODINGS)("says that the disk is full with %s", async (coding) => {
  symlinkSync("/dev/full", path(temporaryOf("a")));
  const writer = createSegmentWriter(path(), "a", coding);
  const write = async (): Promise<void> => {
    for (let at = 0; at < 50; at += 1) await writer.write(randomBytes(100_000), 1);
    await writer.finish();
  };
  await expect(write()).rejects.toMatchObject({ code: "ENOSPC" });
  await writer.abort();
});

it("leaves the file of another process alone when it must not publish its own", async () => {
  writeFileSync(path("a"), "theirs");
  const refuse = () => Promise.reject(new Error("taken over"));
  const writer = createSegmentWriter(path(), "a", "plain", refuse);
  await writer.write(Buffer.from("ours\n"), 1);
  await expect(writer.finish()).rejects.toThrow("taken over");
  await writer.abort();
  expect(readFileSync(path("a"), "utf8")).toBe("theirs");
});
