import {
  type Answer,
  error,
  json,
  lines,
  startServer,
  type TestServer,
} from "../http/test-server.fixture.ts";

export const WATERMARK = "2026-10-05T00:00:00.000000Z";
export const FUTURE = "2126-10-05T00:00:00.000000Z";

export type Service = {
  readonly server: TestServer;
  readonly url: string;
  put(id: string, value: unknown): void;
  remove(id: string): void;
  next(...answers: Answer[]): void;
  /** From now on each answer has a watermark a minute later. */
  moveOn(): void;
};

export type Stored = { readonly _id: string; readonly date_created: string; readonly csat: unknown };

export const changes = (data: readonly object[], cursor: string, isLast = true): Answer =>
  json({ data, meta: { next_cursor: cursor, end_of_stream: isLast } }, { "x-export-watermark": WATERMARK });

/** Begins a first pass of lines. */
export const beginFirstPass = (cursor = "2"): readonly [Answer, Answer] => [
  changes([], cursor),
  changes([], cursor),
];

export const startService = async (): Promise<Service> => {
  const records = new Map<string, Stored>();
  let entries: string[] = [];
  let watermark = WATERMARK;
  let stepMs = 0;
  const special: Answer[] = [];
  const deleted = { deleted: true, deleted_at: WATERMARK };

  const changesFrom = (cursor: number): object[] =>
    [...new Set(entries.slice(cursor))].map((id) => records.get(id) ?? { _id: id, ...deleted });

  const serve: Answer = (response, request) => {
    const asked = special.shift();
    if (asked !== undefined) return asked(response, request);
    const url = new URL(request.url ?? "", "http://x");
    if (request.headers.authorization !== "Bearer k") return error(401, "unauthorized")(response, request);
    if (!url.pathname.endsWith("conversations")) return error(403, "authorization_error")(response, request);
    if (stepMs > 0) watermark = new Date(Date.parse(watermark) + stepMs).toISOString();
    if (url.pathname.includes("/changes/")) {
      const since = url.searchParams.get("stored_since") === null ? 0 : entries.length;
      const data = changesFrom(Number(url.searchParams.get("cursor") ?? since));
      const meta = { next_cursor: String(entries.length), end_of_stream: true };
      return json({ data, meta }, { "x-export-watermark": watermark })(response, request);
    }
    const from = url.searchParams.get("created_since") ?? "";
    const all = [...records.values()]
      .filter(({ date_created: date }) => date >= from)
      .sort((a, b) => (a.date_created < b.date_created ? -1 : 1));
    return lines(all, { count: all.length, watermark })(response, request);
  };
  const server = await startServer(serve);
  return {
    server,
    url: server.baseUrl,
    put: (id, value) => {
      const second = String(records.size % 60).padStart(2, "0");
      const date = records.get(id)?.date_created ?? `2026-10-04T00:00:${second}.000000+00:00`;
      records.set(id, { _id: id, date_created: date, csat: value });
      entries = [...entries, id];
    },
    remove: (id) => {
      records.delete(id);
      entries = [...entries, id];
    },
    next: (...answers) => void special.push(...answers),
    moveOn: () => void (stepMs = 60_000),
  };
};
