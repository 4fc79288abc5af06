import type { Writable } from "node:stream";
import type { ListName } from "../../lists/kinds.ts";
import { isObject } from "../../lists/json-parts.ts";
import { CopyError, ExpiredError, UsageError } from "../exit-code.ts";
import { countDeletions } from "../line.ts";
import { readIfThere, replaceFile } from "./durable-file.ts";
import { isListState } from "./list-state.ts";
import type { ListState, Target } from "./target.ts";
import { type LockOptions, lockForWriting } from "./writer-lock.ts";

type Kept = { readonly service: string; readonly list: ListName; readonly state: ListState };

const isKept = (value: unknown): value is Kept =>
  isObject(value) &&
  typeof value["service"] === "string" &&
  typeof value["list"] === "string" &&
  isListState(value["state"]);

const readKept = async (file: string): Promise<Kept | undefined> => {
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  try {
    const kept: unknown = JSON.parse(text);
    if (isKept(kept)) return kept;
  } catch {
    // The error below names the file.
  }
  throw new CopyError(
    `${file} is no whole state of this command: put it back, or empty what you keep, remove the file, and pull again`,
  );
};

/** The state follows what the reader has taken; after a crash some lines come again. */
export const openOutput = async (options: {
  readonly output: Writable;
  readonly service: string;
  readonly list: ListName;
  readonly stateFile: string | undefined;
  readonly lock?: LockOptions;
}): Promise<Target> => {
  const { output, service, list, stateFile } = options;
  const lock = stateFile === undefined ? undefined : await lockForWriting(`${stateFile}.lock`, options.lock);
  const open = async (): Promise<Kept | undefined> => {
    const found = stateFile === undefined ? undefined : await readKept(stateFile);
    if (found === undefined || (found.service === service && found.list === list)) return found;
    throw new UsageError(`--state: ${stateFile} is of ${found.list} of ${found.service}`);
  };
  const kept = await open().catch(async (error: unknown) => {
    await lock?.release();
    throw error;
  });
  let state = kept?.state;
  const store = async (next: ListState): Promise<void> => {
    state = next;
    if (stateFile !== undefined) {
      await lock?.check();
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
    renew: () =>
      Promise.reject(
        new ExpiredError(
          `the cursor of ${list} has expired, and deletions may be forgotten: empty what you keep, remove the state file, and pull again`,
        ),
      ),
    isRenewing: () => false,
    complete: () => Promise.resolve(),
    lines: async function* () {},
    count: () => 0,
    close: async () => lock?.release(),
  };
};
