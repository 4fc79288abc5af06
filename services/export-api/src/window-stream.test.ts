import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { ServiceError } from "@conversation-export/runtime";
import type { MessagePageQuery, Page } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { openWindow } from "./window-stream.ts";

const WINDOW = { clientId: "acme", since: 0, to: 1_000 };

/** Pages of two records each, from a list of ids; `queries` are what was asked. */
const setUp = (ids: readonly string[]) => {
  const queries: MessagePageQuery[] = [];
  const opened: Readable[] = [];
  const readPage = (query: MessagePageQuery): Promise<Page> => {
    queries.push(query);
    const from = query.after === undefined ? 0 : ids.indexOf(query.after.id) + 1;
    const rows = ids.slice(from, from + 2);
    const more = from + 2 < ids.length;
    const records = Readable.from([Buffer.from(rows.map((id) => `{"_id":"${id}"}`).join("\n"))]);
    opened.push(records);
    return Promise.resolve({
      rows: rows.length,
      next: more ? { date: from + 2, id: rows.at(-1) ?? "" } : null,
      nextIsWhole: true,
      records,
    });
  };
  return { queries, opened, readPage };
};

const LINES = '{"_id":"a"}\n{"_id":"b"}\n{"_id":"c"}\n{"_id":"d"}\n{"_id":"e"}\n';

it("joins the pages to one record a line and counts them", async () => {
  const { queries, readPage } = setUp(["a", "b", "c", "d", "e"]);
  const window = await openWindow(WINDOW, readPage);
  expect(await text(window.records)).toBe(LINES);
  expect(window.count()).toBe(5);
  expect(queries.map(({ after }) => after?.id)).toEqual([undefined, "b", "d"]);
  for (const query of queries) expect(query).toMatchObject({ ...WINDOW, separator: "\n", wholeTies: false });
});

it("is empty for an empty window", async () => {
  const window = await openWindow(WINDOW, setUp([]).readPage);
  expect(await text(window.records)).toBe("");
  expect(window.count()).toBe(0);
});

it("starts behind a position", async () => {
  const { readPage } = setUp(["a", "b", "c"]);
  const window = await openWindow({ ...WINDOW, after: { date: 1, id: "b" } }, readPage);
  expect(await text(window.records)).toBe('{"_id":"c"}\n');
});

it("asks again for a page that fails for a moment before its first byte", async () => {
  const { queries, readPage } = setUp(["a", "b", "c", "d", "e"]);
  let failures = 2;
  const window = await openWindow(WINDOW, (query) => {
    if (query.after !== undefined && failures-- > 0) {
      return Promise.reject(new ServiceError("warehouse_unavailable", "away", { retryable: true }));
    }
    return readPage(query);
  });
  expect(await text(window.records)).toBe(LINES);
  expect(queries).toHaveLength(3);
});

it("rejects when the first page fails, and breaks when a later one does for good", async () => {
  const { readPage } = setUp(["a", "b", "c"]);
  const bug = new Error("a bug");
  await expect(openWindow(WINDOW, () => Promise.reject(bug))).rejects.toBe(bug);
  const window = await openWindow(WINDOW, (query) =>
    query.after === undefined ? readPage(query) : Promise.reject(bug),
  );
  await expect(text(window.records)).rejects.toBe(bug);
});

it("breaks when the records of a page do", async () => {
  const { readPage } = setUp(["a", "b", "c"]);
  const window = await openWindow(WINDOW, async (query) => {
    const page = await readPage(query);
    if (query.after === undefined) return page;
    const records = new Readable({
      read() {
        this.destroy(new Error("midway"));
      },
    });
    return { ...page, records };
  });
  await expect(text(window.records)).rejects.toThrow("midway");
});

it("cancels the page that is read and the one that was asked for when nobody reads on", async () => {
  const { queries, opened, readPage } = setUp(["a", "b", "c", "d", "e"]);
  const window = await openWindow(WINDOW, readPage);
  const reading = window.records[Symbol.asyncIterator]();
  await reading.next();
  await reading.return?.();
  await expect.poll(() => opened.every((records) => records.destroyed)).toBe(true);
  expect(queries.every(({ signal }) => signal?.aborted)).toBe(true);
});
