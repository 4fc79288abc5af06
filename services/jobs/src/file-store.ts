import type { SourceFile } from "./event-source.ts";

/** Files somewhere. Throws ServiceError `source_unreadable`, and `source_changed` when a file is not that any more. */
export type FileStore = {
  /** The files below a location, or the file that it names, by name. */
  list(location: string, signal: AbortSignal): Promise<SourceFile[]>;
  /** The bytes of a file as they are kept. */
  open(file: SourceFile, signal: AbortSignal): AsyncIterable<Buffer>;
};

const NAME = /\.(ndjson|jsonl|json)(\.gz|\.zst)?$/i;

/** Whether a file that nobody has named is taken: lines of JSON, compressed or not. */
export const hasLines = (name: string): boolean => NAME.test(name) && !/(^|\/)\.[^/]*$/.test(name);

export const byLocation = (one: SourceFile, other: SourceFile): number =>
  one.location < other.location ? -1 : 1;
