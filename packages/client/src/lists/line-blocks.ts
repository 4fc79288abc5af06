import { ExportAnswerError, ExportConnectionError } from "../http/errors.ts";

export type Block = { readonly bytes: Uint8Array; readonly lines: number };

export type Trailer = {
  readonly count: number;
  /** All events on the bus before it are included; null: unknown. */
  readonly watermark: string | null;
};
export type ChangesTrailer = Trailer & { readonly next_cursor: string; readonly end_of_stream: boolean };

const NEWLINE = 10;
const TRAILER = '{"trailer":';
/** Longer means another format. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

const decoder = new TextDecoder();

const countLines = (bytes: Uint8Array): number => {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
};

const joined = (parts: readonly Uint8Array[]): Uint8Array => {
  const [first] = parts;
  if (first !== undefined && parts.length === 1) return first;
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
};

const readTrailer = (line: string): Trailer | undefined => {
  if (!line.startsWith(TRAILER)) return undefined;
  let trailer: Partial<Trailer> | null | undefined;
  try {
    ({ trailer } = JSON.parse(line) as { trailer?: Partial<Trailer> | null });
  } catch {
    throw new ExportAnswerError(`the trailer, of ${line.length} characters, is not JSON`);
  }
  return typeof trailer?.count === "number" ? (trailer as Trailer) : undefined;
};

const lastLineStart = (bytes: Uint8Array): number => bytes.lastIndexOf(NEWLINE, bytes.length - 2) + 1;

export const textsOf = (bytes: Uint8Array): string[] => {
  const lines = decoder.decode(bytes).split("\n");
  lines.pop();
  return lines;
};

/** @throws ExportAnswerError without the line */
export const parseLine = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new ExportAnswerError(`a line of ${text.length} characters is not JSON`);
  }
};

/** @throws ExportConnectionError without a trailer, ExportAnswerError for a wrong count */
export async function* lineBlocks<T extends Trailer = Trailer>(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Block, T> {
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  let count = 0;
  let trailer: Trailer | undefined;
  for await (const chunk of chunks) {
    if (trailer !== undefined) throw new ExportAnswerError("the stream goes on behind its trailer");
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      let bytes = joined([...waiting, chunk.subarray(0, end)]);
      waiting = [];
      waitingBytes = 0;
      const last = lastLineStart(bytes);
      trailer = readTrailer(decoder.decode(bytes.subarray(last)));
      if (trailer !== undefined) bytes = bytes.subarray(0, last);
      const lines = countLines(bytes);
      count += lines;
      if (lines > 0) yield { bytes, lines };
    }
    if (end < chunk.length) {
      waiting.push(chunk.subarray(end));
      waitingBytes += chunk.length - end;
      if (waitingBytes > MAX_LINE_BYTES) throw new ExportAnswerError("a line of the stream does not end");
    }
  }
  if (trailer === undefined || waitingBytes > 0) {
    throw new ExportConnectionError(`the stream ended without its trailer, after ${count} lines`, {
      isUnsent: false,
    });
  }
  if (trailer.count !== count) {
    throw new ExportAnswerError(`the stream has ${count} lines, its trailer says ${trailer.count}`);
  }
  return trailer as T;
}
