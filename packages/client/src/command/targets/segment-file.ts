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

const WAITING_BYTES = 1024 * 1024;

export const temporaryOf = (file: string): string => `${file}.tmp`;

/** The file gets its name once complete and synced. */
export const createSegmentWriter = (
  root: string,
  file: string,
  coding: Coding,
  /** Rejects once another process may use these names. */
  requireLock: () => Promise<void> = () => Promise.resolve(),
): SegmentWriter => {
  const temporary = join(root, temporaryOf(file));
  const output = createWriteStream(temporary, { highWaterMark: WAITING_BYTES });
  const encoder = createEncoder(coding);
  const input = encoder ?? output;
  const written = encoder === null ? finished(output) : pipeline(encoder, output);
  // It is awaited later.
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
        // A failed stream never drains.
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

/** @throws CopyError for a damaged file */
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
        // Only here is the line number known.
        idOf(line, where);
        yield line;
      }
    }
  } catch (error) {
    // EISDIR names no path.
    if ((isSystemError(error) && !isCode(error, "EISDIR")) || error instanceof CopyError) throw error;
    throw new CopyError(`${path} is broken: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (rest !== "") throw new CopyError(`${path} is broken: it ends within a line`);
}
