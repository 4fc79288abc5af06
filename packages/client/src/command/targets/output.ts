import { readFile } from "node:fs/promises";
import type { Writable } from "node:stream";
import type { ListName } from "../../lists/changes.ts";
import { CopyError, UsageError } from "../exit-code.ts";
import { countDeletions } from "../line.ts";
import { replaceFile } from "./durable-file.ts";
import type { ListState, Target } from "./target.ts";

type Kept = { readonly service: string; readonly list: ListName; readonly state: ListState };

const readKept = async (file: string): Promise<Kept | undefined> => {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Kept;
  } catch {
    throw new CopyError(`${file} is not JSON`);
  }
};

/**
 * Lines as they come; the state, if it is kept, follows what the reader of the pipe has taken. Lines cannot be
 * taken back: after a broken stream or a crash some come again.
 */
export const openOutput = async (options: {
  readonly output: Writable;
  readonly service: string;
  readonly list: ListName;
  readonly stateFile: string | undefined;
}): Promise<Target> => {
  const { output, service, list, stateFile } = options;
  const kept = stateFile === undefined ? undefined : await readKept(stateFile);
  if (kept !== undefined && (kept.service !== service || kept.list !== list)) {
    throw new UsageError(`--state: ${stateFile} is of ${kept.list} of ${kept.service}`);
  }
  let state = kept?.state;
  const store = async (next: ListState | undefined): Promise<void> => {
    state = next;
    if (stateFile !== undefined && next !== undefined) {
      await replaceFile(
        stateFile,
        `${JSON.stringify({ service, list, state: next } satisfies Kept, null, 1)}\n`,
      );
    }
  };
  return {
    state: () => state,
    begin: () => {
      let bytes = 0;
      let lines = 0;
      let deletions = 0;
      return Promise.resolve({
        bytes: () => bytes,
        write: (block, count) => {
          bytes += block.byteLength;
          lines += count;
          deletions += countDeletions(block);
          return new Promise<void>((resolve, reject) => {
            output.write(block, (error) => (error == null ? resolve() : reject(error)));
          });
        },
        finish: () => Promise.resolve({ file: "-", lines, deletions, bytes }),
        abort: () => Promise.resolve(),
      });
    },
    commit: (_list, _segments, next) => store(next),
    reset: () => store(undefined),
    lines: async function* () {},
    count: () => 0,
    compact: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
};
