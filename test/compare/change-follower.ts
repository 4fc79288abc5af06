import { fetchPatiently } from "./patient-fetch.ts";
import { splitPage } from "./walk.ts";

export type ChangeList = "conversations" | "messages" | "end_users";

type Turn = {
  readonly records: readonly string[];
  readonly nextCursor: string;
  readonly endOfStream: boolean;
};

export type End = {
  /** Milliseconds; 0: none. */
  readonly watermark: number;
  /** In µs, from within the cursor. */
  readonly stableUpTo: number;
};

export type ChangeFollower = {
  readonly list: ChangeList;
  readonly held: ReadonlyMap<string, string>;
  entries(): number;
  /** False: the reader crashes before it stores the cursor. */
  toTheEnd(size: () => number | "lines", isKept?: () => boolean): Promise<End>;
};

const CURSOR_MAC_BYTES = 32;

/** In µs; a cursor's content begins with its place. */
const stableOf = (cursor: string): number =>
  Number(Buffer.from(cursor, "base64url").subarray(CURSOR_MAC_BYTES).toString().split(":")[1]);

const pageOf = (text: string): Turn => {
  const tail = '],"meta":';
  const meta = JSON.parse(text.slice(text.lastIndexOf(tail) + tail.length, -1)) as {
    next_cursor: string;
    end_of_stream: boolean;
  };
  return { records: splitPage(text).records, nextCursor: meta.next_cursor, endOfStream: meta.end_of_stream };
};

const linesOf = (text: string): Turn => {
  const records = text.trimEnd().split("\n");
  const { trailer } = JSON.parse(records.pop() ?? "{}") as {
    trailer?: { count: number; next_cursor: string; end_of_stream: boolean };
  };
  if (trailer?.count !== records.length) throw new Error(`a stream without its end: ${text.slice(-300)}`);
  return { records, nextCursor: trailer.next_cursor, endOfStream: trailer.end_of_stream };
};

type Named = { readonly _id?: string; readonly end_user_id?: string; readonly deleted?: boolean };

export const createChangeFollower = (deps: {
  readonly apiUrl: string;
  readonly key: string;
  readonly list: ChangeList;
}): ChangeFollower => {
  const { apiUrl, key, list } = deps;
  const held = new Map<string, string>();
  let cursor: string | null = null;
  let entries = 0;

  const apply = (text: string): void => {
    const { _id, end_user_id: endUserId, deleted } = JSON.parse(text) as Named;
    const id = _id ?? endUserId;
    if (id === undefined) throw new Error(`a record without an id: ${text}`);
    if (deleted === true) held.delete(id);
    else held.set(id, text);
    entries += 1;
  };

  const turn = async (size: number | "lines"): Promise<Turn & { readonly watermark: number }> => {
    const query = new URLSearchParams();
    if (cursor !== null) query.set("cursor", cursor);
    if (size !== "lines") query.set("page_size", String(size));
    const answer = await fetchPatiently(`${apiUrl}/v2/export/changes/${list}?${query.toString()}`, {
      headers: {
        authorization: `Bearer ${key}`,
        accept: size === "lines" ? "application/x-ndjson" : "application/json",
      },
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${answer.status}: ${text.slice(0, 500)}`);
    const watermark = Date.parse(answer.headers.get("x-export-watermark") ?? "1970-01-01T00:00:00Z");
    return { ...(size === "lines" ? linesOf(text) : pageOf(text)), watermark };
  };

  return {
    list,
    held,
    entries: () => entries,
    toTheEnd: async (size, isKept = () => true) => {
      for (;;) {
        const { records, nextCursor, endOfStream, watermark } = await turn(size());
        for (const text of records) apply(text);
        if (isKept()) cursor = nextCursor;
        if (endOfStream) return { watermark, stableUpTo: stableOf(nextCursor) };
      }
    },
  };
};
