import { copyFile, link } from "node:fs/promises";
import { join } from "node:path";
import type { ListName } from "../../../lists/kinds.ts";
import { isObject } from "../../../lists/json-parts.ts";
import { isCode } from "../../exit-code.ts";
import { type Coding, CODINGS } from "../coding.ts";
import { readIfThere, replaceFile } from "../durable-file.ts";
import { isListState } from "../list-state.ts";
import type { ListState, Segment } from "../target.ts";

export const STATE_FILE = "state.json";
const VERSION = 1;

export type ListFiles = ListState & { readonly segments: readonly Segment[] };
type Lists = Readonly<Partial<Record<ListName, ListFiles>>>;

/** Only files that it names belong to the copy. */
export type FolderState = {
  readonly version: typeof VERSION;
  readonly service: string;
  readonly compress: Coding;
  readonly lists: Lists;
  readonly renewals?: Lists;
};

/** Number, then revision. */
export const SEGMENT = /^(\d{8})(?:\.(\d+))?\.ndjson(?:\.gz|\.zst)?$/;

export const emptyState = (service: string, compress: Coding): FolderState => ({
  version: VERSION,
  service,
  compress,
  lists: {},
});

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

const isSegment = (value: unknown, list: string): boolean =>
  isObject(value) &&
  typeof value["file"] === "string" &&
  value["file"].startsWith(`${list}/`) &&
  SEGMENT.test(value["file"].slice(list.length + 1)) &&
  [value["lines"], value["deletions"], value["bytes"]].every(isCount);

const isLists = (value: unknown): value is Lists =>
  isObject(value) &&
  Object.entries(value).every(
    ([list, files]) =>
      isListState(files) &&
      "segments" in files &&
      Array.isArray(files.segments) &&
      files.segments.every((one) => isSegment(one, list)),
  );

const isFolderState = (value: unknown): value is FolderState =>
  isObject(value) &&
  value["version"] === VERSION &&
  typeof value["service"] === "string" &&
  CODINGS.some((coding) => coding === value["compress"]) &&
  isLists(value["lists"]) &&
  (value["renewals"] === undefined || isLists(value["renewals"]));

export const readState = async (root: string): Promise<FolderState | "unusable" | undefined> => {
  const text = await readIfThere(join(root, STATE_FILE));
  if (text === undefined) return undefined;
  try {
    const state: unknown = JSON.parse(text);
    return isFolderState(state) ? state : "unusable";
  } catch {
    return "unusable";
  }
};

export const writeState = (root: string, state: FolderState): Promise<void> =>
  replaceFile(join(root, STATE_FILE), `${JSON.stringify(state, null, 1)}\n`);

/** The first one is kept for repair. */
export const keepUnusableState = async (root: string): Promise<void> => {
  const file = join(root, STATE_FILE);
  const kept = `${file}.unusable`;
  try {
    await link(file, kept);
  } catch (error) {
    // Some file systems have no hard links.
    if (!isCode(error, "EEXIST")) await copyFile(file, kept);
  }
};
