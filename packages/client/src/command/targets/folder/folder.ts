import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { LISTS, type ListName } from "../../../lists/kinds.ts";
import { CopyError, isCode, UsageError } from "../../exit-code.ts";
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

const OWN_FILE = /^\d{8}(?:\.\d+)?\.ndjson(?:\.gz|\.zst)?(?:\.tmp)?$/;
const LOCK_FILE = "pull.lock";
/** Files beyond what the size needs, before compaction. */
const SPARE_FILES = 32;

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

const namedFiles = ({ lists, renewals }: FolderState, list: ListName): readonly Segment[] => [
  ...(lists[list]?.segments ?? []),
  ...(renewals?.[list]?.segments ?? []),
];

const withoutRenewals = (
  { renewals }: FolderState,
  lists: readonly string[],
): NonNullable<FolderState["renewals"]> =>
  Object.fromEntries(Object.entries(renewals ?? {}).filter(([list]) => !lists.includes(list)));

/** Keeps the order of files by name. */
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
  /** Undefined: as it is. */
  readonly compress: Coding | undefined;
  readonly segmentBytes: number;
  readonly replace?: boolean;
  readonly lock?: LockOptions;
};

/** @throws CopyError for files without a state */
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
  // An abandoned renewal may have another client or fields.
  if (replace) return { ...state, renewals: withoutRenewals(state, lists) };
  for (const list of found === undefined ? LISTS : lists) {
    const known = state.renewals?.[list] ?? state.lists[list];
    // A killed first pass leaves files without a state; a complete copy names at least one.
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

/** @throws CopyError for a missing file */
const requireFiles = async (root: string, list: ListName, state: FolderState): Promise<void> => {
  const there = new Set((await ownFilesIn(root, list)).map((file) => `${list}/${file}`));
  const missing = namedFiles(state, list).find(({ file }) => !there.has(file));
  if (missing !== undefined) throw new CopyError(`${join(root, missing.file)} is missing: ${REMEDY}`);
};

/** Crash-safe by order: content, name, state, then removal. @throws CopyError, UsageError */
export const openFolder = async (options: FolderOptions): Promise<Target> => {
  const { root, lists, segmentBytes } = options;
  await mkdir(root, { recursive: true });
  const lock = await lockForWriting(join(root, LOCK_FILE), options.lock);
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
    // A process that lost its lock may still write it.
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
  /** An empty copy names an empty file, so that lost files are noticed. */
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
