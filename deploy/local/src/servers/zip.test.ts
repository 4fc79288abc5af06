import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readZipEntry } from "./zip.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zip-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

type Entry = { name: string; method: number; bytes: Buffer; size: number };

function zip(entries: readonly Entry[], comment = ""): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, method, bytes, size } of entries) {
    const header = Buffer.alloc(30);
    header.writeUInt32LE(0x04034b50, 0);
    header.writeUInt16LE(method, 8);
    header.writeUInt32LE(bytes.length, 18);
    header.writeUInt32LE(size, 22);
    header.writeUInt16LE(name.length, 26);
    header.writeUInt16LE(4, 28);
    const file = Buffer.concat([header, Buffer.from(name), Buffer.from("more"), bytes]);
    const record = Buffer.alloc(46);
    record.writeUInt32LE(0x02014b50, 0);
    record.writeUInt16LE(method, 10);
    record.writeUInt32LE(bytes.length, 20);
    record.writeUInt32LE(size, 24);
    record.writeUInt16LE(name.length, 28);
    record.writeUInt32LE(offset, 42);
    directory.push(record, Buffer.from(name));
    files.push(file);
    offset += file.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(offset, 16);
  end.writeUInt16LE(comment.length, 20);
  return Buffer.concat([...files, ...directory, end, Buffer.from(comment)]);
}

const text = Buffer.from("a binary ".repeat(1_000));
const entries: Entry[] = [
  { name: "first", method: 0, bytes: Buffer.from("plain"), size: 5 },
  { name: "second", method: 8, bytes: deflateRawSync(text), size: text.length },
  { name: "third", method: 12, bytes: Buffer.from("?"), size: 1 },
];

test("reads stored and deflated files, also before a comment", () => {
  const path = join(folder, "a.zip");
  writeFileSync(path, zip(entries, "a comment"));
  expect(readZipEntry(path, "first").toString()).toBe("plain");
  expect(readZipEntry(path, "second").equals(text)).toBe(true);
});

test("says what is wrong", () => {
  const path = join(folder, "a.zip");
  writeFileSync(path, zip(entries));
  expect(() => readZipEntry(path, "fourth")).toThrow("no entry fourth");
  expect(() => readZipEntry(path, "third")).toThrow("compression method 12");
  writeFileSync(path, "not an archive, but longer than the record at the end of one");
  expect(() => readZipEntry(path, "first")).toThrow("not a zip");
});
