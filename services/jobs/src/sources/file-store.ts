import type { SourceFile } from "./event-source.ts";

/** @throws ServiceError `source_unreadable`, or `source_changed` for another content */
export type FileStore = {
  /** Below a location, or the file it names; sorted by name. */
  list(location: string, signal: AbortSignal): Promise<SourceFile[]>;
  /** As stored. */
  open(file: SourceFile, signal: AbortSignal): AsyncIterable<Buffer>;
};

const NAME = /\.(ndjson|jsonl|json)(\.gz|\.zst)?$/i;

/** Whether a file of a folder is read. */
export const hasLines = (name: string): boolean => NAME.test(name) && !/(^|\/)\.[^/]*$/.test(name);

export const byLocation = (one: SourceFile, other: SourceFile): number =>
  one.location < other.location ? -1 : 1;
