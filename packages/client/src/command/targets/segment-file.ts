import { createReadStream, createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { finished, pipeline } from "node:stream/promises";
import { StringDecoder } from "node:string_decoder";
import { CopyError, isCode, isSystemError } from "../exit-code.ts";
import { countDeletions, idOf } from "../line.ts";
import { type Coding, createDecoder, createEncoder } from "./coding.ts";
import { publishFile, syncFile } from "./durable-file.ts";
import type { SegmentWriter } from "./target.ts";

/** Bytes that may wait to be written while more are read. */
const WAITING_BYTES = 1024 * 1024;

/** The name of a file while it is written. */
export const temporaryOf = (file: string): string => `${file}.tmp`;

/** Writes lines into the new file `file` of `root`, which has its name when it is whole and on the disk. */
export const createSegmentWriter = (
  root: string,
  file: string,
  coding: Coding,
  /** Rejects when the names are no longer this process's: another one may have files of them by now. */
  requireLock: () => Promise<void> = () => Promise.resolve(),
): SegmentWriter => {
  const temporary = join(root, temporaryOf(file));
  const output = createWriteStream(temporary, { highWaterMark: WAITING_BYTES });
  const encoder = createEncoder(coding);
  const input = encoder ?? output;
  const written = encoder === null ? finished(output) : pipeline(encoder, output);
  // It is awaited when much waits and at the end.
  written.catch(() => undefined);
  let bytes = 0;
  let lines = 0;
  let deletions = 0;

  return {
    bytes: () => bytes,
    write: async (block, count) => {
      bytes += block.byteLength;
      lines += count;
      deletions += countDeletions(block);
      if (input.write(block)) return;
      await new Promise<void>((resolve, reject) => {
        // What has failed never drains.
        written.catch(reject);
        input.once("drain", resolve);
      });
    },
    finish: async () => {
      input.end();
      await written;
      await syncFile(temporary);
      await requireLock();
      await publishFile(temporary, join(root, file));
      return { file, lines, deletions, bytes };
    },
    abort: async () => {
      input.destroy();
      output.destroy();
      await written.catch(() => undefined);
      await requireLock().then(
        () => rm(temporary, { force: true }),
        () => undefined,
      );
    },
  };
};

/**
 * The lines of a file, without their newlines.
 * @throws CopyError for one that was cut or is something else
 */
export async function* readSegment(path: string, coding: Coding): AsyncGenerator<string, void> {
  const file = createReadStream(path, { highWaterMark: 256 * 1024 });
  const decoder = createDecoder(coding);
  const source = decoder === null ? file : file.pipe(decoder);
  file.once("error", (error) => source.destroy(error));
  const text = new StringDecoder("utf8");
  let rest = "";
  let number = 0;
  const where = (): string => `${path}: line ${number}`;
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      const lines = (rest + text.write(chunk)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        number += 1;
        // Whoever takes the line does not know where it stands.
        idOf(line, where);
        yield line;
      }
    }
  } catch (error) {
    // What the system says of a folder names no path.
    if ((isSystemError(error) && !isCode(error, "EISDIR")) || error instanceof CopyError) throw error;
    throw new CopyError(`${path} is broken: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (rest !== "") throw new CopyError(`${path} is broken: it ends within a line`);
}
