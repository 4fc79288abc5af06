import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ListName } from "../../lists/changes.ts";
import { CopyError, UsageError } from "../exit-code.ts";
import type { Coding } from "./coding.ts";
import { suffixOf } from "./coding.ts";
import { compactSegments } from "./compaction.ts";
import { syncFolder } from "./durable-file.ts";
import { lockFolder } from "./folder-lock.ts";
import { emptyState, type FolderState, type ListFiles, readState, writeState } from "./folder-state.ts";
import { createSegmentWriter, readSegment } from "./segment-file.ts";
import type { ListState, Segment, Target } from "./target.ts";

/** Files of a copy, whole or unfinished; nothing else in the folder is touched. */
const OWN_FILE = /^\d{8}\.ndjson(?:\.gz|\.zst)?(?:\.tmp)?$/;
/** More files than this beyond what their size asks for are put together. */
const SPARE_FILES = 32;

const numberOf = (file: string): number => Number(/(\d{8})\.ndjson/.exec(file)?.[1] ?? 0);

/** Removes what a process that died has left: files that the state does not name. */
const sweep = async (root: string, list: ListName, segments: readonly Segment[]): Promise<void> => {
  const named = new Set(segments.map(({ file }) => file));
  const found = await readdir(join(root, list));
  for (const { file } of segments) {
    if (!found.includes(file.slice(list.length + 1))) throw new CopyError(`${join(root, file)} is missing`);
  }
  for (const file of found) {
    if (OWN_FILE.test(file) && !named.has(`${list}/${file}`)) await rm(join(root, list, file));
  }
};

/**
 * A copy as files of lines in a folder. A segment is written whole, then named; then the state names it. So
 * a process may die at any instant: what the state does not name is removed by the next one.
 *
 * @throws CopyError, UsageError when the folder cannot be used
 */
export const openFolder = async (options: {
  readonly root: string;
  readonly service: string;
  readonly lists: readonly ListName[];
  /** Undefined: as the folder has it. */
  readonly compress: Coding | undefined;
  readonly segmentBytes: number;
}): Promise<Target> => {
  const { root, service, lists, segmentBytes } = options;
  await mkdir(root, { recursive: true });
  const unlock = await lockFolder(root);
  const open = async (): Promise<FolderState> => {
    const found = await readState(root);
    const state = found ?? emptyState(service, options.compress ?? "plain");
    if (state.service !== service) throw new UsageError(`${root} is a copy of ${state.service}`);
    if (options.compress !== undefined && options.compress !== state.compress) {
      throw new UsageError(`--compress: ${root} has ${state.compress}`);
    }
    for (const list of lists) {
      await mkdir(join(root, list), { recursive: true });
      await sweep(root, list, state.lists[list]?.segments ?? []);
    }
    await syncFolder(root);
    return state;
  };
  let state = await open().catch(async (error: unknown) => {
    await unlock();
    throw error;
  });
  const { compress } = state;
  const filesOf = (list: ListName): readonly Segment[] => state.lists[list]?.segments ?? [];
  const last = new Map(
    lists.map((list) => [list, Math.max(0, ...filesOf(list).map((one) => numberOf(one.file)))]),
  );

  const store = async (list: ListName, files: ListFiles | undefined): Promise<void> => {
    const { [list]: _, ...others } = state.lists;
    const next = { ...state, lists: files === undefined ? others : { ...others, [list]: files } };
    await writeState(root, next);
    state = next;
  };

  const begin: Target["begin"] = (list) => {
    const number = (last.get(list) ?? 0) + 1;
    last.set(list, number);
    const file = `${list}/${String(number).padStart(8, "0")}${suffixOf(compress)}`;
    return Promise.resolve(createSegmentWriter(root, file, compress));
  };
  const read = (segment: Segment) => readSegment(join(root, segment.file), compress);

  const isWorthwhile = (segments: readonly Segment[]): boolean => {
    const bytes = segments.reduce((sum, one) => sum + one.bytes, 0);
    return (
      segments.some(({ deletions }) => deletions > 0) ||
      segments.length > (2 * bytes) / segmentBytes + SPARE_FILES
    );
  };

  return {
    state: (list) => {
      const files = state.lists[list];
      if (files === undefined) return undefined;
      const { segments: _, ...own } = files;
      return own satisfies ListState;
    },
    begin,
    commit: (list, segments, own) =>
      store(list, { ...own, segments: [...filesOf(list), ...segments.filter(({ lines }) => lines > 0)] }),
    reset: async (list) => {
      await store(list, undefined);
      await sweep(root, list, []);
    },
    lines: async function* (list) {
      for (const segment of filesOf(list)) yield* read(segment);
    },
    count: (list) => filesOf(list).reduce((sum, { lines }) => sum + lines, 0),
    compact: async (list, force) => {
      const files = state.lists[list];
      if (files === undefined || !(force || isWorthwhile(files.segments))) return;
      const segments = await compactSegments(files.segments, {
        read,
        begin: () => begin(list),
        segmentBytes,
      });
      await store(list, { ...files, segments });
      await sweep(root, list, segments);
    },
    close: unlock,
  };
};
