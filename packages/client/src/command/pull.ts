import { type Client, createClient } from "../client.ts";
import { callerOf, type ClientOptions } from "../client-options.ts";
import { ExportAnswerError, ExportApiError } from "../http/errors.ts";
import type { ListName } from "../lists/changes.ts";
import { readInstant } from "../lists/instant.ts";
import { textsOf } from "../lists/line-blocks.ts";
import { createStreams, type Streams } from "../lists/streams.ts";
import { selectFields } from "./line.ts";
import type { ListState, Segment, SegmentWriter, Target } from "./targets/target.ts";

/** What happened to a list so far. */
export type Note = {
  readonly list: ListName;
  /** Lines that came in this run. */
  readonly lines: number;
  readonly deletions: number;
  readonly bytes: number;
  readonly watermark: string | null;
  /** The share of the first pass that is done, by the dates of the records; null when it is unknown. */
  readonly done: number | null;
  readonly isFirstPass: boolean;
  /** True: the cursor had expired, and the copy is made afresh. */
  readonly isRenewed: boolean;
};

export type PullDeps = {
  readonly client: Client;
  readonly streams: Streams;
  readonly target: Target;
  /** Bytes after which what came is stored. */
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

/** What is needed to read the service. */
export const createReading = (options: ClientOptions): Pick<PullDeps, "client" | "streams"> => ({
  client: createClient(options),
  streams: createStreams(callerOf(options)),
});

/**
 * What is settled lies at most some seconds behind the watermark of the changes; they are begun well before,
 * so that the cursor lies before every record that the first pass may miss.
 */
const MARGIN_MS = 60_000;
export const BEGINNING = "1970-01-01T00:00:00Z";

const GONE = 410;

/**
 * A cursor of the changes as of now; null when they have to be read from their beginning. Every record that
 * was stored before it is in the lists by now, and every later one comes behind it.
 */
const presentCursor = async ({ client }: PullDeps, list: ListName): Promise<string | null> => {
  let watermark: string | null = null;
  for await (const page of client.changes(list, { pageSize: 1 })) {
    ({ watermark } = page);
    break;
  }
  if (watermark === null) return null;
  const known = readInstant(watermark);
  if (known === undefined) throw new ExportAnswerError("X-Export-Watermark is no instant");
  const storedSince = new Date(known.ms - MARGIN_MS);
  let cursor: string | null = null;
  for await (const page of client.changes(list, { storedSince, pageSize: 10_000 })) ({ cursor } = page);
  return cursor;
};

/** Where a copy that does not exist yet begins. */
const beginning = async (deps: PullDeps, { list, since, fields }: Wanted): Promise<ListState> => {
  const state = { since, fields, watermark: null, cursor: null, firstPass: null };
  // End users have no list as lines, and lists do not know when a record was stored.
  if (since !== null || list === "end_users") return state;
  const cursor = await presentCursor(deps, list);
  return cursor === null ? state : { ...state, cursor, firstPass: { place: null } };
};

/** Counts what comes, and tells it. */
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
    /** The first pass has reached this date. */
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

/** Writes blocks, of each record the wanted fields. */
const writeTo = async (
  writer: SegmentWriter,
  { bytes, lines }: { readonly bytes: Uint8Array; readonly lines: number },
  { list, fields }: Pick<Wanted, "list" | "fields">,
): Promise<void> => {
  if (fields === null) return writer.write(bytes, lines);
  const texts = textsOf(bytes).map((line) => `${selectFields(line, list, fields)}\n`);
  return writer.write(Buffer.from(texts.join("")), lines);
};

/** Takes the whole list by the dates of its records, and stores after each segment how far it has come. */
const firstPass = async (
  deps: PullDeps,
  list: "conversations" | "messages",
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

/** Records of a page of changes: so much comes again when one is lost. */
const PAGE_SIZE = 5_000;

/** Makes a segment whole; one without lines is none. */
const segmentsOf = async (writer: SegmentWriter): Promise<Segment[]> => {
  if (writer.bytes() > 0) return [await writer.finish()];
  await writer.abort();
  return [];
};

/** Takes changes up to their end, and stores after each segment how far it has come. */
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
      // A file of a list that no state names could be anybody's.
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

/** The service says so itself; the status of a proxy is no reason to make a copy afresh. */
const isExpired = (error: unknown): boolean =>
  error instanceof ExportApiError && error.status === GONE && error.type === "resource_not_found";

/** Makes the copy of a list, goes on with it, or brings it up to date. */
const advance = async (deps: PullDeps, wanted: Wanted, tally: Tally): Promise<void> => {
  const { target, streams } = deps;
  const { list } = wanted;
  let state = target.state(list);
  if (state === undefined) {
    state = await beginning(deps, wanted);
    if (state.firstPass !== null) await target.commit(list, [], state);
  } else if (state.firstPass !== null && state.cursor !== null) {
    // Another client's key would go on with its own records; the cursor is good for one client alone.
    await streams.changesPage(list, { cursor: state.cursor, page_size: 1 });
  }
  if (state.firstPass !== null && list !== "end_users") state = await firstPass(deps, list, state, tally);
  await takeChanges(deps, list, state, tally);
  await target.complete(list);
};

/**
 * Makes the copy of a list, or brings it up to date. When its cursor is too old, so that deletions may be
 * forgotten, a new one is made beside it, which then takes its place.
 *
 * @returns what came
 */
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
