import snappy from "snappy";

// Java's xerial stream: magic, versions, then blocks behind their length.
const XERIAL_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
export const XERIAL_HEADER = Buffer.concat([XERIAL_MAGIC, Buffer.from([0, 0, 0, 1, 0, 0, 0, 1])]);

/** Writers make blocks of 32 KiB, or of one batch. */
const MAX_BLOCK_BYTES = 64 * 1024 * 1024;

const lengthOf = (block: Buffer): number => {
  let length = 0;
  for (let index = 0; index < 5; index += 1) {
    const byte = block[index];
    if (byte === undefined) break;
    length += (byte & 0x7f) * 128 ** index;
    if (byte < 0x80) return length;
  }
  throw new RangeError("a Snappy block has no length");
};

const uncompress = (block: Buffer): Buffer => {
  const length = lengthOf(block);
  if (length > MAX_BLOCK_BYTES) throw new RangeError(`a Snappy block of ${length} bytes is too large`);
  return snappy.uncompressSync(block, { asBuffer: true }) as Buffer;
};

/** librdkafka and others write one plain block. */
const blocksOf = (packed: Buffer): Buffer[] => {
  if (!packed.subarray(0, XERIAL_MAGIC.length).equals(XERIAL_MAGIC)) return [packed];
  const blocks: Buffer[] = [];
  for (let at = XERIAL_HEADER.length; at < packed.length; ) {
    const start = at + 4;
    at = start + packed.readUInt32BE(at);
    if (at > packed.length) throw new RangeError("a Snappy block ends behind its batch");
    blocks.push(packed.subarray(start, at));
  }
  return blocks;
};

function* unpacked(blocks: readonly Buffer[]): Generator<Buffer> {
  for (const block of blocks) yield uncompress(block);
}

/** Above `wholeBytes` block by block. */
export const unpackSnappy = (packed: Buffer, wholeBytes: number): Buffer | Iterable<Buffer> => {
  const blocks = blocksOf(packed);
  const [first] = blocks;
  if (first !== undefined && blocks.length === 1) return uncompress(first);
  const total = blocks.reduce((sum, block) => sum + lengthOf(block), 0);
  const parts = unpacked(blocks);
  return total > wholeBytes ? parts : Buffer.concat([...parts]);
};
