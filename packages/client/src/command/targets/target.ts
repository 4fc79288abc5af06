import type { ListName } from "../../lists/kinds.ts";
import type { Entry } from "../digests.ts";
import type { Place } from "../../lists/window-blocks.ts";

export type ListState = {
  /** Null: changes have not begun. */
  readonly cursor: string | null;
  readonly firstPass: { readonly place: Place | null } | null;
  /** All events on the bus before it are in the copy; null: unknown. */
  readonly watermark: string | null;
  /** Null: everything. */
  readonly since: string | null;
  /** In addition to the id; null: all. */
  readonly fields: readonly string[] | null;
  /** The first changes are incomplete. */
  readonly isPartial?: boolean;
};

/** Does not count until `commit`. */
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
  abort(): Promise<void>;
};

export type Target = {
  state(list: ListName): ListState | undefined;
  begin(list: ListName): Promise<SegmentWriter>;
  /** Segments and state, both or none. */
  commit(list: ListName, segments: readonly Segment[], state: ListState): Promise<void>;
  /** All later calls use the new copy; the old one stays until `complete`. */
  renew(list: ListName): Promise<void>;
  complete(list: ListName): Promise<void>;
  /** In the order stored; the last line of an id counts. */
  lines(list: ListName): AsyncGenerator<string, void>;
  /** Where a target keeps them instead of lines. */
  digests?(list: ListName): AsyncGenerator<Entry, void>;
  /** Superseded lines included. */
  count(list: ListName): number;
  isRenewing(list: ListName): boolean;
  /** Where superseded lines stay; without `force` only if there is enough to remove. */
  compact?(list: ListName, force: boolean): Promise<void>;
  /** Writes files for readers. */
  publish?(list: ListName): Promise<void>;
  /** @throws CopyError if readers' files do not match */
  check?(list: ListName): Promise<void>;
  /** Removes the bytes of deleted records; only `close` may follow. */
  rewrite?(): Promise<void>;
  close(): Promise<void>;
};
