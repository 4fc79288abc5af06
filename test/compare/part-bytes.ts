import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { zstdDecompressSync } from "node:zlib";
import { runSql } from "../system/warehouse-sql.ts";

const CHECKSUM_BYTES = 16;
const HEADER_BYTES = 9;
const LZ4 = 0x82;
const ZSTD = 0x90;
const STORED = 0x02;
/** Only instants use several codecs, so these blocks hold no text. */
const MULTIPLE = 0x91;

const unpackLz4 = (block: Buffer, size: number): Buffer => {
  const out = Buffer.alloc(size);
  let at = 0;
  let end = 0;
  const length = (nibble: number): number => {
    let total = nibble;
    if (nibble < 15) return total;
    for (;;) {
      const byte = block[at++] ?? 0;
      total += byte;
      if (byte < 255) return total;
    }
  };
  while (at < block.length) {
    const token = block[at++] ?? 0;
    const literals = length(token >> 4);
    block.copy(out, end, at, at + literals);
    at += literals;
    end += literals;
    if (at >= block.length) break;
    const distance = block.readUInt16LE(at);
    at += 2;
    const matched = length(token & 15) + 4;
    // A match may overlap its own output.
    for (let copied = 0; copied < matched; copied += 1, end += 1) out[end] = out[end - distance] ?? 0;
  }
  return out;
};

const unpack = (method: number, block: Buffer, size: number): Buffer => {
  if (method === LZ4) return unpackLz4(block, size);
  return method === ZSTD ? zstdDecompressSync(block) : block;
};

const contentOf = function* (bytes: Buffer): Generator<Buffer> {
  let at = 0;
  while (at < bytes.length) {
    const method = bytes[at + CHECKSUM_BYTES] ?? 0;
    const left = bytes.length - at - CHECKSUM_BYTES;
    const packed = left >= HEADER_BYTES ? bytes.readUInt32LE(at + CHECKSUM_BYTES + 1) : 0;
    const isBlock = [LZ4, ZSTD, STORED, MULTIPLE].includes(method) && packed > HEADER_BYTES && packed <= left;
    // An uncompressed rest, such as the marks behind the data.
    if (!isBlock) return yield bytes.subarray(at);
    const size = bytes.readUInt32LE(at + CHECKSUM_BYTES + 5);
    const block = bytes.subarray(at + CHECKSUM_BYTES + HEADER_BYTES, at + CHECKSUM_BYTES + packed);
    yield unpack(method, block, size);
    at += CHECKSUM_BYTES + packed;
  }
};

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

const searchFile = (file: string, texts: readonly string[]): { bytes: number; found: Set<string> } => {
  const overlap = Math.max(...texts.map((text) => Buffer.byteLength(text))) - 1;
  const found = new Set<string>();
  let bytes = 0;
  // A text may span two blocks.
  let end: Buffer = Buffer.alloc(0);
  for (const block of contentOf(readFileSync(file))) {
    bytes += block.length;
    const content = Buffer.concat([end, block]);
    for (const text of texts) if (!found.has(text) && content.includes(text)) found.add(text);
    end = overlap > 0 ? content.subarray(-overlap) : end;
  }
  return { bytes, found };
};

const isGone = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT";

/** A part merged meanwhile is replaced by its successor. */
export const findInActiveParts = async (
  url: string,
  texts: readonly string[],
): Promise<{
  readonly searchedBytes: number;
  readonly found: Readonly<Record<string, readonly string[]>>;
}> => {
  const partsWhere = async (condition: string): Promise<[table: string, path: string][]> => {
    const sql = `SELECT toString(table_uuid), path FROM system.parts AS p
      INNER JOIN (SELECT database, name, uuid AS table_uuid FROM system.tables) AS t
        ON t.database = p.database AND t.name = p.table
      WHERE active AND ${condition} FORMAT JSONCompactEachRow`;
    const lines = (await runSql(url, sql)).split("\n").filter((line) => line !== "");
    return lines.map((line) => JSON.parse(line) as [string, string]);
  };
  const found: Record<string, string[]> = {};
  let searchedBytes = 0;
  const searched = new Set<string>();
  const waiting = await partsWhere("true");
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [table, path] = next;
    if (searched.has(path)) continue;
    searched.add(path);
    try {
      for (const file of filesBelow(path)) {
        const inFile = searchFile(file, texts);
        searchedBytes += inFile.bytes;
        for (const text of inFile.found) (found[text] ??= []).push(file);
        // Otherwise fetch would reuse a connection that ClickHouse has closed.
        await setImmediate();
      }
    } catch (error) {
      if (!isGone(error)) throw error;
      waiting.push(...(await partsWhere(`table_uuid = '${table}'`)));
    }
  }
  return { searchedBytes, found };
};
