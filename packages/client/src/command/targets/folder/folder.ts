import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ListName } from "../../../lists/changes.ts";
import { CopyError, UsageError } from "../../exit-code.ts";
import type { Coding } from "../coding.ts";
import { suffixOf } from "../coding.ts";
import { compactSegments, MAX_IDS } from "./compaction.ts";
import { syncFolder } from "../durable-file.ts";
import { emptyState, type FolderState, type ListFiles, readState, writeState } from "./folder-state.ts";
import { removeDeleted } from "./removal.ts";
import { createSegmentWriter, readSegment } from "../segment-file.ts";
import type { ListState, Segment, Target } from "../target.ts";
import { type LockOptions, lockForWriting } from "../writer-lock.ts";

/** Files of a copy, whole or unfinished; nothing else in the folder is touched. */
const OWN_FILE = /^\d{8}(?:\.\d+)?\.ndjson(?:\.gz|\.zst)?(?:\.tmp)?$/;
const LOCK_FILE = "pull.lock";
/** More files than this beyond what their size asks for are put together. */
const SPARE_FILES = 32;

const numberOf = (file: string): number => Number(/(\d{8})(?:\.\d+)?\.ndjson/.exec(file)?.[1] ?? 0);

/** The files of the copy of a list, and of the one that will take its place. */
const namedFiles = ({ lists, renewals }: FolderState, list: ListName): readonly Segment[] => [
  ...(lists[list]?.segments ?? []),
  ...(renewals?.[list]?.segments ?? []),
];

/** The next name of a file that is rewritten: it stays in its place when files are sorted by name. */
const revisionOf = (file: string): string =>
  file.replace(
    /(\d{8})(?:\.(\d+))?\.ndjson/,
    (_, number: string, revision = "0") => `${number}.${Number(revision) + 1}.ndjson`,
  );

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
  readonly lock?: LockOptions;
}): Promise<Target> => {
  const { root, service, lists, segmentBytes } = options;
  await mkdir(root, { recursive: true });
  const lock = await lockForWriting(join(root, LOCK_FILE), options.lock);
  const open = async (): Promise<FolderState> => {
    const found = await readState(root);
    const state = found ?? emptyState(service, options.compress ?? "plain");
    if (state.service !== service)
      throw new UsageError(`${root} is a copy of ${state.service}, not of ${service}`);
    if (options.compress !== undefined && options.compress !== state.compress) {
      throw new UsageError(`--compress: ${root} has ${state.compress}`);
    }
    for (const list of lists) {
      await mkdir(join(root, list), { recursive: true });
      await sweep(root, list, namedFiles(state, list));
    }
    await syncFolder(root);
    return state;
  };
  let state = await open().catch(async (error: unknown) => {
    await lock.release();
    throw error;
  });
  const { compress } = state;
  const renewing = new Set(Object.keys(state.renewals ?? {}));
  const currentOf = (list: ListName): ListFiles | undefined =>
    (renewing.has(list) ? state.renewals : state.lists)?.[list];
  const filesOf = (list: ListName): readonly Segment[] => currentOf(list)?.segments ?? [];
  const last = new Map(
    lists.map((list) => [list, Math.max(0, ...namedFiles(state, list).map((one) => numberOf(one.file)))]),
  );

  const write = async (change: Partial<FolderState>): Promise<void> => {
    const next = { ...state, ...change };
    await lock.check();
    await writeState(root, next);
    state = next;
  };
  const store = (list: ListName, files: ListFiles): Promise<void> =>
    write(
      renewing.has(list)
        ? { renewals: { ...state.renewals, [list]: files } }
        : { lists: { ...state.lists, [list]: files } },
    );
  const withoutRenewal = (list: ListName): NonNullable<FolderState["renewals"]> => {
    const { [list]: _, ...others } = state.renewals ?? {};
    return others;
  };

  const begin: Target["begin"] = (list) => {
    const number = (last.get(list) ?? 0) + 1;
    last.set(list, number);
    const file = `${list}/${String(number).padStart(8, "0")}${suffixOf(compress)}`;
    return Promise.resolve(createSegmentWriter(root, file, compress, lock.check));
  };
  const beginInstead = ({ file }: Segment) =>
    Promise.resolve(createSegmentWriter(root, revisionOf(file), compress, lock.check));
  const read = (segment: Segment) => readSegment(join(root, segment.file), compress);

  /** What is left of the segments; the same when nothing needs to be done. */
  const compacted = (
    list: ListName,
    segments: readonly Segment[],
    force: boolean,
  ): Promise<readonly Segment[]> => {
    const bytes = segments.reduce((sum, one) => sum + one.bytes, 0);
    const deletions = segments.reduce((sum, one) => sum + one.deletions, 0);
    if (force || deletions > MAX_IDS || segments.length > (2 * bytes) / segmentBytes + SPARE_FILES) {
      return compactSegments(segments, { read, begin: () => begin(list), segmentBytes });
    }
    return deletions > 0 ? removeDeleted(segments, { read, beginInstead }) : Promise.resolve(segments);
  };

  return {
    state: (list) => {
      const files = currentOf(list);
      if (files === undefined) return undefined;
      const { segments: _, ...own } = files;
      return own satisfies ListState;
    },
    begin,
    commit: (list, segments, own) =>
      store(list, { ...own, segments: [...filesOf(list), ...segments.filter(({ lines }) => lines > 0)] }),
    renew: async (list) => {
      renewing.add(list);
      await write({ renewals: withoutRenewal(list) });
      await sweep(root, list, namedFiles(state, list));
    },
    complete: async (list) => {
      const files = currentOf(list);
      if (!renewing.has(list) || files === undefined) return;
      await write({ lists: { ...state.lists, [list]: files }, renewals: withoutRenewal(list) });
      renewing.delete(list);
      await sweep(root, list, files.segments);
    },
    lines: async function* (list) {
      for (const segment of filesOf(list)) yield* read(segment);
    },
    count: (list) => filesOf(list).reduce((sum, { lines }) => sum + lines, 0),
    compact: async (list, force) => {
      const files = currentOf(list);
      if (files === undefined) return;
      const segments = await compacted(list, files.segments, force);
      if (segments === files.segments) return;
      await store(list, { ...files, segments });
      await sweep(root, list, namedFiles(state, list));
    },
    close: lock.release,
  };
};
