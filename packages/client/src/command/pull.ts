import { ExportAnswerError, ExportApiError } from "../http/errors.ts";
import type { ChangesQuery } from "../interface/types.ts";
import { hasWindows, type ListName, type WindowOf } from "../lists/kinds.ts";
import { readInstant } from "../lists/instant.ts";
import { textsOf } from "../lists/line-blocks.ts";
import type { Streams } from "../lists/streams.ts";
import { selectFields } from "./line.ts";
import type { ListState, Segment, SegmentWriter, Target } from "./targets/target.ts";

export type Note = {
  readonly list: ListName;
  readonly lines: number;
  readonly deletions: number;
  readonly bytes: number;
  readonly watermark: string | null;
  /** Estimated from the dates of records; null: unknown. */
  readonly done: number | null;
  readonly isFirstPass: boolean;
  readonly isRenewed: boolean;
};

export type PullDeps = {
  readonly streams: Streams;
  readonly target: Target;
  readonly segmentBytes: number;
  readonly onNote: (note: Note) => void;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};

export type Wanted = {
  readonly list: ListName;
  readonly since: string | null;
  readonly fields: readonly string[] | null;
};

/** Changes start so long before the watermark, to cover all that the first pass may miss. */
const MARGIN_MS = 60_000;
export const BEGINNING = "1970-01-01T00:00:00Z";

const GONE = 410;

/** Every record stored before this cursor is in the lists already; null: read all changes. */
const presentCursor = async ({ streams }: PullDeps, list: ListName): Promise<string | null> => {
  const { watermark } = await streams.changesPage(list, { page_size: 1 });
  if (watermark === null) return null;
  const known = readInstant(watermark);
  if (known === undefined) throw new ExportAnswerError("X-Export-Watermark is no instant");
  const since = new Date(known.ms - MARGIN_MS).toISOString();
  let query: ChangesQuery = { stored_since: since };
  for (;;) {
    const { cursor, endOfStream } = await streams.changesPage(list, { ...query, page_size: 10_000 });
    if (endOfStream) return cursor;
    query = { cursor };
  }
};

const beginning = async (deps: PullDeps, { list, since, fields }: Wanted): Promise<ListState> => {
  const state = { since, fields, watermark: null, cursor: null, firstPass: null };
  // Lists cannot be filtered by stored at.
  if (since !== null || !hasWindows(list)) return state;
  const cursor = await presentCursor(deps, list);
  return cursor === null ? state : { ...state, cursor, firstPass: { place: null } };
};

const createTally = (list: ListName, { onNote, now }: PullDeps) => {
  let first: number | undefined;
  let note: Note = {
    list,
    lines: 0,
    deletions: 0,
    bytes: 0,
    watermark: null,
    done: null,
    isFirstPass: false,
    isRenewed: false,
  };
  const report = (change: Partial<Note>): void => {
    note = { ...note, ...change };
    onNote(note);
  };
  return {
    note: () => note,
    report,
    came: (bytes: number, lines: number): void =>
      report({ bytes: note.bytes + bytes, lines: note.lines + lines }),
    deleted: (deletions: number): void => report({ deletions: note.deletions + deletions }),
    reached: (date: string): void => {
      const at = readInstant(date)?.ms;
      if (at === undefined) return report({ isFirstPass: true, done: null });
      first ??= at;
      const whole = now() - first;
      report({ isFirstPass: true, done: whole > 0 ? Math.min(1, Math.max(0, (at - first) / whole)) : null });
    },
  };
};
type Tally = ReturnType<typeof createTally>;

const writeTo = async (
  writer: SegmentWriter,
  { bytes, lines }: { readonly bytes: Uint8Array; readonly lines: number },
  { list, fields }: Pick<Wanted, "list" | "fields">,
): Promise<void> => {
  if (fields === null) return writer.write(bytes, lines);
  const texts = textsOf(bytes).map((line) => `${selectFields(line, list, fields)}\n`);
  return writer.write(Buffer.from(texts.join("")), lines);
};

const firstPass = async (
  deps: PullDeps,
  list: keyof WindowOf,
  begun: ListState,
  tally: Tally,
): Promise<ListState> => {
  const { target, streams, segmentBytes } = deps;
  let state = begun;
  let writer = await target.begin(list);
  try {
    const known = begun.firstPass?.place ?? undefined;
    if (known !== undefined) tally.reached(known.date);
    const blocks = streams.window(list, { createdSince: BEGINNING }, known);
    for await (const block of blocks) {
      await writeTo(writer, block, { list, fields: state.fields });
      tally.came(block.bytes.byteLength, block.lines);
      tally.reached(block.place.date);
      if (writer.bytes() < segmentBytes) continue;
      const { date, ids } = block.place;
      state = { ...state, firstPass: { place: { date, ids: [...ids] } } };
      await target.commit(list, [await writer.finish()], state);
      writer = await target.begin(list);
    }
    state = { ...state, firstPass: null };
    await target.commit(list, [await writer.finish()], state);
    return state;
  } catch (error) {
    await writer.abort();
    throw error;
  }
};

/** So much is read again after an error. */
const PAGE_SIZE = 5_000;

const segmentsOf = async (writer: SegmentWriter): Promise<Segment[]> => {
  if (writer.bytes() > 0) return [await writer.finish()];
  await writer.abort();
  return [];
};

const takeChanges = async (deps: PullDeps, list: ListName, begun: ListState, tally: Tally): Promise<void> => {
  const { target, streams, segmentBytes } = deps;
  const { since, fields } = begun;
  let state = begun;
  let writer: SegmentWriter | undefined;
  try {
    for (;;) {
      const { cursor } = state;
      const begin = since === null ? {} : { stored_since: since };
      const query = cursor === null ? begin : { cursor };
      const page = await streams.changesPage(list, { ...query, page_size: PAGE_SIZE });
      // State first: unnamed files may belong to someone else.
      if (target.state(list) === undefined) await target.commit(list, [], begun);
      writer ??= await target.begin(list);
      if (page.lines > 0) await writeTo(writer, page, { list, fields });
      tally.came(page.bytes.byteLength, page.lines);
      const { endOfStream, watermark } = page;
      state = { ...state, cursor: page.cursor, isPartial: !endOfStream && state.watermark === null };
      if (endOfStream) state = { ...state, watermark };
      else if (writer.bytes() < segmentBytes) continue;
      const segments = await segmentsOf(writer);
      writer = undefined;
      await target.commit(list, segments, state);
      for (const { deletions } of segments) tally.deleted(deletions);
      if (endOfStream) return tally.report({ watermark, isFirstPass: false, done: null });
    }
  } catch (error) {
    await writer?.abort();
    throw error;
  }
};

/** A proxy's 410 must not start the copy again. */
const isExpired = (error: unknown): boolean =>
  error instanceof ExportApiError && error.status === GONE && error.type === "resource_not_found";

const advance = async (deps: PullDeps, wanted: Wanted, tally: Tally): Promise<void> => {
  const { target, streams } = deps;
  const { list } = wanted;
  let state = target.state(list);
  if (state === undefined) {
    state = await beginning(deps, wanted);
    if (state.firstPass !== null) await target.commit(list, [], state);
  } else if (state.firstPass !== null && state.cursor !== null) {
    // Another client's key must fail here.
    await streams.changesPage(list, { cursor: state.cursor, page_size: 1 });
  }
  if (state.firstPass !== null && hasWindows(list)) state = await firstPass(deps, list, state, tally);
  await takeChanges(deps, list, state, tally);
  await target.complete(list);
};

/** After an expired cursor a new copy is made, which then replaces the old one. */
export const pullList = async (deps: PullDeps, wanted: Wanted): Promise<Note> => {
  const tally = createTally(wanted.list, deps);
  try {
    await advance(deps, wanted, tally);
  } catch (error) {
    if (!isExpired(error)) throw error;
    await deps.target.renew(wanted.list);
    tally.report({ isRenewed: true });
    await advance(deps, wanted, tally);
  }
  return tally.note();
};
