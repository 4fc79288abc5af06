import { readFileSync } from "node:fs";
import { inflateRawSync } from "node:zlib";

const endOfDirectory = 0x06054b50;
const directoryEntry = 0x02014b50;
const stored = 0;
const deflated = 8;

/** No zip64. */
export function readZipEntry(archivePath: string, name: string): Buffer {
  const zip = readFileSync(archivePath);
  let end = zip.length - 22;
  while (end >= 0 && zip.readUInt32LE(end) !== endOfDirectory) end -= 1;
  if (end < 0) throw new Error(`${archivePath} is not a zip archive`);
  let at = zip.readUInt32LE(end + 16);
  for (
    let left = zip.readUInt16LE(end + 10);
    left > 0 && zip.readUInt32LE(at) === directoryEntry;
    left -= 1
  ) {
    const nameLength = zip.readUInt16LE(at + 28);
    if (zip.toString("utf8", at + 46, at + 46 + nameLength) === name) return readEntry(zip, at, archivePath);
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  throw new Error(`${archivePath} has no entry ${name}`);
}

function readEntry(zip: Buffer, at: number, archivePath: string): Buffer {
  const method = zip.readUInt16LE(at + 10);
  const header = zip.readUInt32LE(at + 42);
  const start = header + 30 + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28);
  const bytes = zip.subarray(start, start + zip.readUInt32LE(at + 20));
  if (method === stored) return bytes;
  if (method === deflated) return inflateRawSync(bytes);
  throw new Error(`${archivePath} uses the unknown compression method ${method}`);
}
