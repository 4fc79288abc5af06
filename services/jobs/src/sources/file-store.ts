import type { SourceFile } from "./event-source.ts";

/** @throws ServiceError `source_unreadable`, `source_changed` */
export type FileStore = {
  /** Sorted by name. */
  list(location: string, signal: AbortSignal): Promise<SourceFile[]>;
  open(file: SourceFile, signal: AbortSignal): AsyncIterable<Buffer>;
};

const NAME = /\.(ndjson|jsonl|json)(\.gz|\.zst)?$/i;

export const hasLines = (name: string): boolean => NAME.test(name) && !/(^|\/)\.[^/]*$/.test(name);

export const byLocation = (one: SourceFile, other: SourceFile): number =>
  one.location < other.location ? -1 : 1;
