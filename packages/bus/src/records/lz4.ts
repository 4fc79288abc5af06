import lz4 from "lz4-napi";

const MAGIC = 0x184d2204;
const UNLINKED = 0x20;
const BLOCK_CHECKSUMS = 0x10;
const CONTENT_SIZE = 0x08;
const CONTENT_CHECKSUM = 0x04;
const DICTIONARY = 0x01;
/** The block is not compressed. */
const STORED = 0x80000000;
const HISTORY_BYTES = 64 * 1024;

type Block = { readonly bytes: Buffer; readonly isStored: boolean };
type Frame = {
  /** Kafka's own clients read nothing behind it. */
  readonly end: number;
  readonly maxBlock: number;
  readonly isLinked: boolean;
  readonly blocks: readonly Block[];
};

const frameOf = (packed: Buffer): Frame => {
  const flags = packed.length < 7 || packed.readUInt32LE(0) !== MAGIC ? undefined : packed.readUInt8(4);
  if (flags === undefined || (flags & DICTIONARY) !== 0) throw new RangeError("not a frame of LZ4");
  // 4 to 7 stand for 64 KiB, 256 KiB, 1 MiB and 4 MiB.
  const maxBlock = 2 ** (8 + 2 * ((packed.readUInt8(5) >> 4) & 7));
  const blocks: Block[] = [];
  const behind = (flags & BLOCK_CHECKSUMS) === 0 ? 0 : 4;
  let at = (flags & CONTENT_SIZE) === 0 ? 7 : 15;
  for (;;) {
    const length = packed.readUInt32LE(at);
    if (length === 0) break;
    const start = at + 4;
    const end = start + (length % STORED);
    if (end > packed.length) throw new RangeError("an LZ4 block ends behind its batch");
    blocks.push({ bytes: packed.subarray(start, end), isStored: length >= STORED });
    at = end + behind;
  }
  const end = at + ((flags & CONTENT_CHECKSUM) === 0 ? 4 : 8);
  return { end, maxBlock, isLinked: (flags & UNLINKED) === 0, blocks };
};

function* unpacked({ maxBlock, isLinked, blocks }: Frame): Generator<Buffer> {
  let history: Buffer = Buffer.alloc(0);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(maxBlock);
  for (const { bytes, isStored } of blocks) {
    const part = isStored
      ? bytes
      : lz4.uncompressSync(Buffer.concat([size, bytes]), history.length === 0 ? undefined : history);
    yield part;
    if (isLinked) history = Buffer.concat([history, part]).subarray(-HISTORY_BYTES);
  }
}

/** Above `wholeBytes` block by block. */
export const unpackLz4 = (packed: Buffer, wholeBytes: number): Buffer | Iterable<Buffer> => {
  const frame = frameOf(packed);
  if (frame.blocks.length * frame.maxBlock > wholeBytes) return unpacked(frame);
  return lz4.decompressFrameSync(packed.subarray(0, frame.end));
};
