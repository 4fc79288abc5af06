const MAGIC = 0xfd2fb528;
const DICTIONARY_BYTES = [0, 1, 2, 4];
const LENGTH_BYTES = [0, 2, 4, 8];
const RLE_BLOCK = 1;

/** RFC 8878, 3.1.1. */
export const countZstdFrames = (bytes: Buffer): number => {
  let at = 0;
  let frames = 0;
  while (at < bytes.length) {
    if (bytes.readUInt32LE(at) !== MAGIC) throw new Error(`no frame begins at byte ${at}`);
    const descriptor = bytes.readUInt8(at + 4);
    const isSingleSegment = (descriptor & 0x20) !== 0;
    const hasChecksum = (descriptor & 0x04) !== 0;
    const lengthBytes = LENGTH_BYTES[descriptor >> 6] ?? 0;
    at += 5 + (isSingleSegment ? 0 : 1) + (DICTIONARY_BYTES[descriptor & 3] ?? 0);
    at += lengthBytes === 0 && isSingleSegment ? 1 : lengthBytes;
    for (let isLast = false; !isLast; ) {
      const header = bytes.readUIntLE(at, 3);
      isLast = (header & 1) === 1;
      at += 3 + (((header >> 1) & 3) === RLE_BLOCK ? 1 : header >> 3);
    }
    if (hasChecksum) at += 4;
    frames += 1;
  }
  return frames;
};
