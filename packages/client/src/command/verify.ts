import { hasWindows, type ListName } from "../lists/kinds.ts";
import { readInstant } from "../lists/instant.ts";
import { parseLine, textsOf } from "../lists/line-blocks.ts";
import { BUCKETS, bucketOf, createSums, entryOf, type Sums } from "./digests.ts";
import { idOf, isDeletion, recordOf } from "./line.ts";
import { BEGINNING, type PullDeps } from "./pull.ts";
import { CopyError } from "./exit-code.ts";
import type { ListState } from "./targets/target.ts";

export type Verified = {
  readonly list: ListName;
  readonly local: number;
  readonly remote: number;
  readonly localChecksum: string;
  readonly remoteChecksum: string;
  readonly missing: number;
  readonly extra: number;
  readonly different: number;
  /** Changed since the last pull. */
  readonly changed: number;
  readonly examples: readonly string[];
  /** False: it stopped at the first differences. */
  readonly isWhole: boolean;
};

type Deps = Pick<PullDeps, "streams" | "target"> & {
  readonly sleep: (ms: number) => Promise<void>;
  readonly maxHeld?: number;
};

/** About 40 MB. */
const MAX_HELD = 150_000;
const MAX_EXAMPLES = 10;
/** The change feed and its watermark move in steps, seconds behind the lists. */
const BEHIND_MS = 10_000;
const POLL_MS = 500;
const MAX_POLLS = 120;

async function* remoteRecords({ streams }: Deps, list: ListName): AsyncGenerator<unknown, void> {
  if (!hasWindows(list)) {
    yield* streams.records(list);
    return;
  }
  for await (const { bytes } of streams.window(list, { createdSince: BEGINNING })) {
    for (const text of textsOf(bytes)) yield parseLine(text);
  }
}

const localDigests = async (
  { target }: Deps,
  list: ListName,
  fields: readonly string[] | null,
  isWanted: (bucket: number) => boolean,
): Promise<Map<string, string>> => {
  const found = new Map<string, string>();
  if (target.digests !== undefined) {
    for await (const { id, digest } of target.digests(list))
      if (isWanted(bucketOf(id))) found.set(id, digest);
    return found;
  }
  let number = 0;
  const where = (): string => `line ${number} of the copy of ${list}`;
  for await (const line of target.lines(list)) {
    number += 1;
    const id = idOf(line);
    if (!isWanted(bucketOf(id))) continue;
    if (isDeletion(line)) found.delete(id);
    else found.set(id, entryOf(recordOf(line, where), list, fields).digest);
  }
  return found;
};

const localSums = async (deps: Deps, list: ListName, fields: readonly string[] | null): Promise<Sums> => {
  const sums = createSums();
  const parts = Math.min(BUCKETS, Math.max(1, Math.ceil(deps.target.count(list) / MAX_HELD)));
  for (let part = 0; part < parts; part += 1) {
    const held = await localDigests(deps, list, fields, (bucket) => bucket % parts === part);
    for (const [id, digest] of held) sums.add({ id, digest });
  }
  return sums;
};

type Differences = {
  readonly missing: Set<string>;
  readonly extra: Set<string>;
  readonly different: Set<string>;
};

const sizeOfAll = ({ missing, extra, different }: Differences): number =>
  missing.size + extra.size + different.size;

const portionsOf = (
  buckets: readonly number[],
  sizeOf: (bucket: number) => number,
  maxHeld: number,
): Set<number>[] => {
  const portions: Set<number>[] = [];
  let held = Infinity;
  for (const bucket of buckets) {
    held += sizeOf(bucket);
    if (held > maxHeld) {
      portions.push(new Set());
      held = sizeOf(bucket);
    }
    portions.at(-1)?.add(bucket);
  }
  return portions;
};

const differencesIn = async (
  deps: Deps,
  list: ListName,
  { fields, since }: ListState,
  buckets: ReadonlySet<number>,
): Promise<Differences> => {
  const held = await localDigests(deps, list, fields, (bucket) => buckets.has(bucket));
  const missing = new Set<string>();
  const different = new Set<string>();
  for await (const record of remoteRecords(deps, list)) {
    const { id, digest } = entryOf(record, list, fields);
    if (!buckets.has(bucketOf(id))) continue;
    const own = held.get(id);
    // A copy with a start date lacks older records.
    if (own === undefined) {
      if (since === null) missing.add(id);
    } else if (own !== digest) different.add(id);
    held.delete(id);
  }
  return { missing, extra: new Set(held.keys()), different };
};

/** Returns how many changed since the pull. */
const leaveOutChanged = async (
  deps: Deps,
  list: ListName,
  cursor: string,
  differences: Differences,
): Promise<number> => {
  const before = sizeOfAll(differences);
  // By the service's clock, from which this machine's may differ.
  let until: number | undefined;
  let from = cursor;
  for (let polls = 0; sizeOfAll(differences) > 0; ) {
    const page = await deps.streams.changesPage(list, { cursor: from, page_size: 10_000 });
    for (const line of textsOf(page.bytes)) {
      const id = idOf(line, () => `a change of ${list}`);
      for (const set of Object.values(differences)) set.delete(id);
    }
    from = page.cursor;
    const reached = readInstant(page.watermark ?? "")?.ms;
    if (reached !== undefined) until ??= reached + BEHIND_MS;
    if (!page.endOfStream) continue;
    if ((reached ?? 0) >= (until ?? Infinity) || polls === MAX_POLLS) break;
    polls += 1;
    await deps.sleep(POLL_MS);
  }
  return before - sizeOfAll(differences);
};

/** @throws CopyError without a complete copy, or if readers' files do not match */
export const verifyList = async (deps: Deps, list: ListName): Promise<Verified> => {
  const state: ListState | undefined = deps.target.state(list);
  if (state === undefined || state.firstPass !== null || state.cursor === null || state.isPartial === true) {
    throw new CopyError(`the copy of ${list} is not complete: pull it first`);
  }
  await deps.target.check?.(list);
  const { fields, since, cursor } = state;
  const local = await localSums(deps, list, fields);
  const remote = createSums();
  for await (const record of remoteRecords(deps, list)) remote.add(entryOf(record, list, fields));
  const buckets = local.differencesTo(remote);
  // With a start date the service has far more records.
  const sizeOf = (bucket: number): number =>
    local.count(bucket) + (since === null ? remote.count(bucket) : 0);
  const portions = portionsOf(buckets, sizeOf, deps.maxHeld ?? MAX_HELD);
  let differences: Differences = { missing: new Set(), extra: new Set(), different: new Set() };
  let changed = 0;
  let looked = 0;
  // When all differences are recent changes, the next portion may hold real ones.
  while (looked < portions.length && sizeOfAll(differences) === 0) {
    differences = await differencesIn(deps, list, state, portions[looked] ?? new Set());
    changed += await leaveOutChanged(deps, list, cursor, differences);
    looked += 1;
  }
  const { missing, extra, different } = differences;
  return {
    list,
    local: local.total(),
    remote: remote.total(),
    localChecksum: local.checksum(),
    remoteChecksum: remote.checksum(),
    missing: missing.size,
    extra: extra.size,
    different: different.size,
    changed,
    examples: [...missing, ...extra, ...different].slice(0, MAX_EXAMPLES),
    isWhole: looked === portions.length,
  };
};

export const isEqual = ({ missing, extra, different, isWhole }: Verified): boolean =>
  missing + extra + different === 0 && isWhole;
