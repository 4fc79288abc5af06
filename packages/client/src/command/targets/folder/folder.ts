import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ListName } from "../../../lists/changes.ts";
import { CopyError, isCode, UsageError } from "../../exit-code.ts";
import { ID_FIELD } from "../../line.ts";
import type { Coding } from "../coding.ts";
import { suffixOf } from "../coding.ts";
import { compactSegments, MAX_IDS } from "./compaction.ts";
import { syncFolder } from "../durable-file.ts";
import {
  emptyState,
  type FolderState,
  keepUnusableState,
  type ListFiles,
  readState,
  SEGMENT,
  STATE_FILE,
  writeState,
} from "./folder-state.ts";
import { removeDeleted } from "./removal.ts";
import { createSegmentWriter, readSegment, temporaryOf } from "../segment-file.ts";
import type { ListState, Segment, SegmentWriter, Target } from "../target.ts";
import { type LockOptions, lockForWriting } from "../writer-lock.ts";

/** Files that a copy may have, whole or unfinished. */
const OWN_FILE = /^\d{8}(?:\.\d+)?\.ndjson(?:\.gz|\.zst)?(?:\.tmp)?$/;
const LOCK_FILE = "pull.lock";
/** More files than this beyond what their size asks for are put together. */
const SPARE_FILES = 32;
const LISTS = Object.keys(ID_FIELD) as ListName[];

const REMEDY =
  "put it back, or pull with --replace: that begins anew, and removes the old files when the new copy is complete";

const ownFilesIn = async (root: string, list: ListName): Promise<string[]> => {
  try {
    return (await readdir(join(root, list))).filter((file) => OWN_FILE.test(file));
  } catch (error) {
    if (isCode(error, "ENOENT")) return [];
    throw error;
  }
};

/** The files of the copy of a list, and of the one that will take its place. */
const namedFiles = ({ lists, renewals }: FolderState, list: ListName): readonly Segment[] => [
  ...(lists[list]?.segments ?? []),
  ...(renewals?.[list]?.segments ?? []),
];

const withoutRenewals = (
  { renewals }: FolderState,
  lists: readonly string[],
): NonNullable<FolderState["renewals"]> =>
  Object.fromEntries(Object.entries(renewals ?? {}).filter(([list]) => !lists.includes(list)));

/** The next free name of a file that is rewritten: it stays in its place when files are sorted by name. */
const revisionOf = (file: string, taken: readonly string[]): string => {
  const [, number = "", revision = "0"] = SEGMENT.exec(file) ?? [];
  const end = file.slice(file.indexOf(".ndjson"));
  for (let next = Number(revision) + 1; ; next += 1) {
    const name = `${number}.${next}${end}`;
    if (!taken.includes(name)) return name;
  }
};

type FolderOptions = {
  readonly root: string;
  readonly service: string;
  readonly lists: readonly ListName[];
  /** Undefined: as the folder has it. */
  readonly compress: Coding | undefined;
  readonly segmentBytes: number;
  /** Begins the lists anew; the old files stay until each is complete. */
  readonly replace?: boolean;
  readonly lock?: LockOptions;
};

/** @throws CopyError for a folder that has files and no state that names their list */
const stateOf = async (options: FolderOptions): Promise<FolderState> => {
  const { root, service, lists, compress, replace = false } = options;
  const file = join(root, STATE_FILE);
  const found = await readState(root);
  if (found === "unusable" && !replace)
    throw new CopyError(`${file} is no whole state of this command: ${REMEDY}`);
  if (found === "unusable") await keepUnusableState(root);
  const state =
    found === "unusable" || found === undefined ? emptyState(service, compress ?? "plain") : found;
  if (state.service !== service)
    throw new UsageError(`${root} is a copy of ${state.service}, not of ${service}`);
  if (compress !== undefined && compress !== state.compress)
    throw new UsageError(`--compress: ${root} has ${state.compress}`);
  // A renewal that another run left may be of another client, or have other fields.
  if (replace) return { ...state, renewals: withoutRenewals(state, lists) };
  for (const list of found === undefined ? LISTS : lists) {
    const known = state.renewals?.[list] ?? state.lists[list];
    // A first pass that was killed leaves whole files; a complete copy names one.
    if (known !== undefined && (known.watermark === null || known.segments.length > 0)) continue;
    const files = await ownFilesIn(root, list);
    const unnamed = files.find((file) => known === undefined || SEGMENT.test(file));
    if (unnamed !== undefined)
      throw new CopyError(
        `${join(root, list, unnamed)}: no state in ${file} is about the files of ${list}: ${REMEDY}`,
      );
  }
  return state;
};

/** @throws CopyError when the folder lacks a file that its state names */
const requireFiles = async (root: string, list: ListName, state: FolderState): Promise<void> => {
  const there = new Set((await ownFilesIn(root, list)).map((file) => `${list}/${file}`));
  const missing = namedFiles(state, list).find(({ file }) => !there.has(file));
  if (missing !== undefined) throw new CopyError(`${join(root, missing.file)} is missing: ${REMEDY}`);
};

/**
 * A copy as files of lines in a folder. A segment is written whole, then named; then the state names it. So
 * a process may die at any instant: what the state does not name is removed when a pull of the list has ended.
 *
 * @throws CopyError, UsageError when the folder cannot be used
 */
export const openFolder = async (options: FolderOptions): Promise<Target> => {
  const { root, lists, segmentBytes } = options;
  await mkdir(root, { recursive: true });
  const lock = await lockForWriting(join(root, LOCK_FILE), options.lock);
  /** The largest number that a whole file of each list has: an unfinished one is written anew. */
  const last = new Map<ListName, number>();
  const open = async (): Promise<FolderState> => {
    const found = await stateOf(options);
    for (const list of lists) {
      if (options.replace !== true) await requireFiles(root, list, found);
      const numbers = (await ownFilesIn(root, list)).map((file) => Number(SEGMENT.exec(file)?.[1] ?? 0));
      last.set(list, Math.max(0, ...numbers));
    }
    return found;
  };
  let state = await open().catch(async (error: unknown) => {
    await lock.release();
    throw error;
  });
  const { compress } = state;
  const renewing = new Set<string>([
    ...Object.keys(state.renewals ?? {}),
    ...(options.replace === true ? lists : []),
  ]);
  const currentOf = (list: ListName): ListFiles | undefined =>
    (renewing.has(list) ? state.renewals : state.lists)?.[list];
  const filesOf = (list: ListName): readonly Segment[] => currentOf(list)?.segments ?? [];

  /** Removes files that the state does not name, once those that it names are a whole copy. */
  const sweep = async (list: ListName): Promise<void> => {
    if (renewing.has(list)) return;
    await lock.check();
    const named = new Set(namedFiles(state, list).map(({ file }) => file));
    for (const file of await ownFilesIn(root, list))
      if (!named.has(`${list}/${file}`)) await rm(join(root, list, file));
  };

  const write = async (change: Partial<FolderState>): Promise<void> => {
    const next = { ...state, ...change };
    await lock.check();
    await writeState(root, next);
    state = next;
  };
  const writerOf = async (file: string): Promise<SegmentWriter> => {
    // A process whose lock was taken over may still write the old one.
    await rm(join(root, temporaryOf(file)), { force: true });
    return createSegmentWriter(root, file, compress, lock.check);
  };
  const beginNumber = async (list: ListName, number: number): Promise<SegmentWriter> => {
    if ((await mkdir(join(root, list), { recursive: true })) !== undefined) await syncFolder(root);
    return writerOf(`${list}/${String(number).padStart(8, "0")}${suffixOf(compress)}`);
  };
  const begin: Target["begin"] = (list) => {
    const number = (last.get(list) ?? 0) + 1;
    last.set(list, number);
    return beginNumber(list, number);
  };
  /** Stores what a list has; a complete copy names a file, empty or not, so that one without is known as lost. */
  const store = async (list: ListName, own: ListFiles): Promise<void> => {
    const isNameless = own.watermark !== null && own.segments.length === 0;
    const files = isNameless ? { ...own, segments: [await (await beginNumber(list, 0)).finish()] } : own;
    await write(
      renewing.has(list)
        ? { renewals: { ...state.renewals, [list]: files } }
        : { lists: { ...state.lists, [list]: files } },
    );
  };
  const beginInstead = async (list: ListName, { file }: Segment) => {
    const name = revisionOf(file.slice(list.length + 1), await ownFilesIn(root, list));
    return writerOf(`${list}/${name}`);
  };
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
    return deletions > 0
      ? removeDeleted(segments, { read, beginInstead: (segment) => beginInstead(list, segment) })
      : Promise.resolve(segments);
  };

  return {
    state: (list) => {
      const files = currentOf(list);
      if (files === undefined) return undefined;
      const { segments: _, ...own } = files;
      return own satisfies ListState;
    },
    begin,
    commit: (list, segments, own) => {
      const full = [...filesOf(list), ...segments].filter(({ lines }) => lines > 0);
      return store(list, { ...own, segments: full.length > 0 ? full : filesOf(list) });
    },
    renew: async (list) => {
      renewing.add(list);
      await write({ renewals: withoutRenewals(state, [list]) });
    },
    isRenewing: (list) => renewing.has(list),
    complete: async (list) => {
      const files = currentOf(list);
      if (renewing.has(list) && files !== undefined) {
        await write({ lists: { ...state.lists, [list]: files }, renewals: withoutRenewals(state, [list]) });
        renewing.delete(list);
      }
      await sweep(list);
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
      await sweep(list);
    },
    close: lock.release,
  };
};
