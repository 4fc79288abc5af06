import { ServiceError } from "@conversation-export/runtime";
import { eventOfLine } from "./event-of-line.ts";
import type {
  EventSource,
  FilesPart,
  SourceBatch,
  SourceEvent,
  SourceFile,
  SourceProblem,
} from "./event-source.ts";
import type { FileStore } from "./file-store.ts";
import { createLineCutter, type Line } from "./line-cutter.ts";
import { unpack } from "./unpack.ts";

const MAX_LINE_BYTES = 4 * 1024 * 1024;
const BATCH_EVENTS = 5_000;
const BATCH_BYTES = 8 * 1024 * 1024;
const PART_BYTES = 64 * 1024 * 1024;
const PART_FILES = 100;
/** Their list is stored in Redis. */
const MAX_FILES = 100_000;

export function groupFiles(files: readonly SourceFile[]): FilesPart[] {
  const parts: SourceFile[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const file of files) {
    const last = parts.at(-1);
    if (last === undefined || last.length >= PART_FILES || bytes + file.size > PART_BYTES) {
      parts.push([file]);
      bytes = file.size;
    } else {
      last.push(file);
      bytes += file.size;
    }
  }
  return parts.map((group) => ({ kind: "files", files: group }));
}

/** Files have only events' times, so windows must be by event. */
export function createFileSource(deps: {
  readonly location: string;
  readonly store: FileStore;
  readonly now: () => number;
}): EventSource {
  const { location, store, now } = deps;

  async function* readFile(file: SourceFile, signal: AbortSignal): AsyncGenerator<SourceBatch> {
    const cutter = createLineCutter(MAX_LINE_BYTES);
    const context = { topic: `file:${file.location}#${file.tag}`, location: file.location, now: now() };
    let events: SourceEvent[] = [];
    let problems: SourceProblem[] = [];
    let bytes = 0;
    const take = (line: Line): void => {
      const one = eventOfLine(line, context);
      if ("message" in one) events.push(one);
      else problems.push(one);
      bytes += line.bytes?.length ?? 0;
    };
    const isFull = (): boolean => events.length + problems.length >= BATCH_EVENTS || bytes >= BATCH_BYTES;
    const flush = (): SourceBatch => {
      const batch = { events, problems };
      [events, problems, bytes] = [[], [], 0];
      return batch;
    };
    for await (const chunk of unpack(file.location, store.open(file, signal))) {
      for (const line of cutter.push(chunk)) {
        take(line);
        if (!isFull()) continue;
        yield flush();
        signal.throwIfAborted();
      }
    }
    for (const line of cutter.end()) take(line);
    if (events.length + problems.length > 0) yield flush();
  }

  return {
    parts: async (window, signal) => {
      if (window !== null && window.by !== "event") {
        throw new ServiceError(
          "backfill_window",
          "files know the times of events only: use a window by event",
        );
      }
      const files = await store.list(location, signal);
      if (files.length === 0) {
        throw new ServiceError("source_unreadable", `no .ndjson, .jsonl or .json files in ${location}`);
      }
      if (files.length > MAX_FILES) {
        throw new ServiceError("source_unreadable", `more than ${MAX_FILES} files in ${location}`);
      }
      return groupFiles(files);
    },
    read: async function* (part, signal) {
      if (part.kind !== "files") throw new TypeError("not a part of files");
      let failure: ServiceError | undefined;
      for (const file of part.files) {
        try {
          yield* readFile(file, signal);
        } catch (error) {
          // One bad file does not stop the others; the part fails at the end.
          if (!(error instanceof ServiceError) || error.retryable) throw error;
          failure ??= error;
        }
      }
      if (failure !== undefined) throw failure;
    },
  };
}
