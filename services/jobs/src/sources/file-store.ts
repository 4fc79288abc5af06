import type { SourceFile } from "./event-source.ts";

/**
 * Files of a disk or bucket.
 * @throws ServiceError `source_unreadable`; `source_changed` when the file has changed
 */
export type FileStore = {
  /** The files below a location, or the one file that it names, sorted by name. */
  list(location: string, signal: AbortSignal): Promise<SourceFile[]>;
  /** The bytes of a file as stored. */
  open(file: SourceFile, signal: AbortSignal): AsyncIterable<Buffer>;
};

const NAME = /\.(ndjson|jsonl|json)(\.gz|\.zst)?$/i;

/** Whether a file found in a folder is read: lines of JSON, compressed or not. */
export const hasLines = (name: string): boolean => NAME.test(name) && !/(^|\/)\.[^/]*$/.test(name);

export const byLocation = (one: SourceFile, other: SourceFile): number =>
  one.location < other.location ? -1 : 1;
