import type { ListName } from "../../lists/changes.ts";
import type { Entry } from "../digests.ts";
import type { Place } from "../../lists/window-blocks.ts";

/** How far a copy of a list has come. It is stored together with the data, or after it. */
export type ListState = {
  /** Where the changes go on; null: they have not begun. */
  readonly cursor: string | null;
  /** The first pass over the list while it lasts: the place that it has reached. */
  readonly firstPass: { readonly place: Place | null } | null;
  /** Every event that reached the bus before this instant is in the copy; null while it is unknown. */
  readonly watermark: string | null;
  /** The copy began with what changed then; null: with everything. */
  readonly since: string | null;
  /** The fields that it has in addition to the id; null: all. */
  readonly fields: readonly string[] | null;
  /** True: changes have come that are the beginning of the copy, but not all of them. */
  readonly isPartial?: boolean;
};

/** Lines that were written but do not count yet. */
export type Segment = {
  readonly file: string;
  readonly lines: number;
  readonly deletions: number;
  /** Before compression. */
  readonly bytes: number;
};

export type SegmentWriter = {
  bytes(): number;
  write(bytes: Uint8Array, lines: number): Promise<void>;
  /** Makes it durable. */
  finish(): Promise<Segment>;
  /** Removes it. */
  abort(): Promise<void>;
};

/** A place that holds a copy. A line counts when `commit` has returned, and then with its state. */
export type Target = {
  state(list: ListName): ListState | undefined;
  begin(list: ListName): Promise<SegmentWriter>;
  /** Adds segments and stores the state, both or none. */
  commit(list: ListName, segments: readonly Segment[], state: ListState): Promise<void>;
  /** Begins a list afresh: all that follows is about the new copy. The old one stays until `complete`. */
  renew(list: ListName): Promise<void>;
  /** A copy that was begun afresh takes the place of the old one. */
  complete(list: ListName): Promise<void>;
  /** All lines in the order in which they were stored: of lines with one id the last counts. */
  lines(list: ListName): AsyncGenerator<string, void>;
  /** Ids and checksums of the records, where a target keeps them instead of lines. */
  digests?(list: ListName): AsyncGenerator<Entry, void>;
  /** Lines that `lines` will give, superseded ones included. */
  count(list: ListName): number;
  /** True while a new copy of the list is made beside the old one. */
  isRenewing(list: ListName): boolean;
  /** Removes what is superseded or deleted, when there is enough of it or `force` is set. */
  compact(list: ListName, force: boolean): Promise<void>;
  /** Writes what readers open, when the list has changed. */
  publish?(list: ListName): Promise<void>;
  /** Looks whether what readers open is the copy. @throws CopyError */
  check?(list: ListName): Promise<void>;
  /** Writes the place anew without the bytes of what was removed; only `close` may follow. */
  rewrite?(): Promise<void>;
  close(): Promise<void>;
};
