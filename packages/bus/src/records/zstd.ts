import { createZstdDecompress, zstdDecompressSync } from "node:zlib";

/** Writers make one frame of a batch. */
const MAX_FRAMES = 64;

/** Node's type leaves out what `info` gives. */
type Unpacked = { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } };

/** Node itself ends at the first frame. */
const behind = (packed: Buffer, frame: number, taken: number): Buffer => {
  if (frame === MAX_FRAMES) throw new RangeError("zstd data has too many frames");
  if (taken === 0) throw new RangeError("not a frame of zstd");
  return packed.subarray(taken);
};

/** Throws ERR_BUFFER_TOO_LARGE. */
export const unpackZstd = (packed: Buffer, wholeBytes: number): Buffer => {
  const parts: Buffer[] = [];
  let room = wholeBytes;
  for (let [rest, frame] = [packed, 1]; parts.length === 0 || rest.length > 0; frame += 1) {
    const given: unknown = zstdDecompressSync(rest, { maxOutputLength: Math.max(1, room), info: true });
    const { buffer, engine } = given as Unpacked;
    parts.push(buffer);
    room -= buffer.length;
    rest = behind(rest, frame, engine.bytesWritten);
  }
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
};

export async function* streamZstd(packed: Buffer, chunkBytes: number): AsyncGenerator<Buffer> {
  for (let [rest, frame] = [packed, 1]; rest.length > 0; frame += 1) {
    const stream = createZstdDecompress({ chunkSize: chunkBytes });
    stream.end(rest);
    for await (const chunk of stream) yield chunk as Buffer;
    rest = behind(rest, frame, stream.bytesWritten);
  }
}
