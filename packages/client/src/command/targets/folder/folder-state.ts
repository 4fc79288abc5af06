import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ListName } from "../../../lists/changes.ts";
import { CopyError } from "../../exit-code.ts";
import { type Coding, CODINGS } from "../coding.ts";
import { replaceFile } from "../durable-file.ts";
import type { ListState, Segment } from "../target.ts";

export const STATE_FILE = "state.json";
const VERSION = 1;

export type ListFiles = ListState & { readonly segments: readonly Segment[] };

/** What `state.json` says: only files that it names belong to the copy. */
export type FolderState = {
  readonly version: typeof VERSION;
  /** The base address that the copy is of. */
  readonly service: string;
  readonly compress: Coding;
  readonly lists: Readonly<Partial<Record<ListName, ListFiles>>>;
  /** Copies that will take the place of those in `lists` when they are complete. */
  readonly renewals?: Readonly<Partial<Record<ListName, ListFiles>>>;
};

export const emptyState = (service: string, compress: Coding): FolderState => ({
  version: VERSION,
  service,
  compress,
  lists: {},
});

/** The state of a folder; undefined when it has none. @throws CopyError when it cannot be used */
export const readState = async (root: string): Promise<FolderState | undefined> => {
  const file = join(root, STATE_FILE);
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  let state: FolderState | null;
  try {
    state = JSON.parse(text) as FolderState | null;
  } catch {
    throw new CopyError(`${file} is not JSON`);
  }
  if (state?.version !== VERSION || !CODINGS.includes(state.compress)) {
    throw new CopyError(`${file} was written by another version of this command`);
  }
  return state;
};

export const writeState = (root: string, state: FolderState): Promise<void> =>
  replaceFile(join(root, STATE_FILE), `${JSON.stringify(state, null, 1)}\n`);
