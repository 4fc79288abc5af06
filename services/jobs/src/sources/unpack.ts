import { type Duplex, finished, Readable } from "node:stream";
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from "node:zlib";
import { ServiceError } from "@conversation-export/runtime";

const CHUNK_BYTES = 256 * 1024;

function decompressorFor(name: string): (() => Gunzip | ZstdDecompress) | undefined {
  if (/\.gz$/i.test(name)) return () => createGunzip({ chunkSize: CHUNK_BYTES });
  if (/\.zst$/i.test(name)) return () => createZstdDecompress({ chunkSize: CHUNK_BYTES });
  return undefined;
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** Does not end the stream after a frame: the rest belongs to the next. */
function feed(chunks: AsyncIterable<Buffer>, into: Duplex, onError: (error: Error) => void): Readable {
  const source = Readable.from(chunks, { objectMode: false, highWaterMark: CHUNK_BYTES });
  source.on("error", (error) => {
    onError(error);
    into.destroy(error);
  });
  finished(into, () => source.destroy());
  source.pipe(into);
  return source;
}

/** A file may be several packed ones joined. @throws ServiceError `source_unreadable` */
export async function* unpack(name: string, raw: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const create = decompressorFor(name);
  if (create === undefined) {
    yield* raw;
    return;
  }
  const iterator = raw[Symbol.asyncIterator]();
  /** Fed, but perhaps not used by its frame. */
  let fed: Buffer[] = [];
  let again: Buffer[] = [];
  let isDone = false;
  let failure: Error | undefined;

  async function* chunks(): AsyncGenerator<Buffer> {
    while (true) {
      let chunk = again.shift();
      if (chunk === undefined) {
        const next = await iterator.next();
        if (next.done === true) {
          isDone = true;
          return;
        }
        chunk = next.value;
      }
      fed.push(chunk);
      yield chunk;
    }
  }

  function dropUsed(bytes: number): void {
    let left = bytes;
    while (fed[0] !== undefined && left >= fed[0].length) left -= fed.shift()?.length ?? 0;
    if (fed[0] !== undefined) fed[0] = fed[0].subarray(left);
  }

  try {
    while (true) {
      const first =
        again.shift() ?? (isDone ? undefined : ((await iterator.next()).value as Buffer | undefined));
      if (first === undefined) return;
      again.unshift(first);
      const frame = create();
      const own = chunks();
      const source = feed(own, frame, (error) => {
        failure = error;
      });
      let used = 0;
      try {
        for await (const chunk of frame) {
          dropUsed(frame.bytesWritten - used);
          used = frame.bytesWritten;
          yield chunk as Buffer;
        }
        dropUsed(frame.bytesWritten - used);
      } catch (error) {
        if (failure !== undefined) throw failure;
        const why = asError(error).message;
        throw new ServiceError("source_unreadable", `${name} cannot be unpacked: ${why}`, { cause: error });
      } finally {
        source.destroy();
        frame.destroy();
        // A chunk may be on its way to a frame that wants no more.
        await own.return(undefined);
      }
      again = [...fed, ...again];
      fed = [];
    }
  } finally {
    await iterator.return?.();
  }
}
