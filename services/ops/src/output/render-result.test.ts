import { expect, it } from "vitest";
import { renderResult } from "./render-result.ts";

it("gives each field a line, and of counts those that are not 0", () => {
  const text = renderResult({
    dryRun: false,
    events: { read: 12_345, suppressed: 0 },
    rows: { inserted: { messages: 2, handoffs: 1 }, deleted: { messages: 0 } },
    deletableSince: null,
    problems: [],
  });
  expect(text.split("\n")).toEqual([
    "dry run          no",
    "events           read 12,345",
    "rows inserted    messages 2, handoffs 1",
    "rows deleted     0",
    "deletable since  -",
    "problems         -",
  ]);
});

it("says of a dry run what would be done", () => {
  const skipped = { replayedBefore: 2 };
  expect(renderResult({ dryRun: true, read: 3, replayed: 1, skipped }).split("\n")).toEqual([
    "dry run       yes",
    "read          3",
    "would replay  1",
    "skipped       replayed before 2",
  ]);
  const rows = { inserted: { messages: 2 }, deleted: { messages: 0 } };
  expect(renderResult({ dryRun: true, rows }).split("\n").slice(1)).toEqual([
    "would insert rows  messages 2",
    "would delete rows  0",
  ]);
  const tables = [{ table: "messages", rows: 5, rowsDropped: 3 }];
  expect(renderResult({ dryRun: true, tables })).toContain("table messages, rows 5, would drop rows 3");
  const again = { dryRun: true, ids: 1 };
  expect(renderResult({ deleted: { messages: 2 }, again })).toContain(
    "would delete  messages 2\nagain         dry run yes",
  );
});

it("shows the first entries of a list and says how many are left", () => {
  const missing = Array.from({ length: 22 }, (_, id) => ({ clientId: "acme", id: String(id) }));
  const lines = renderResult({ missing }).split("\n");
  expect(lines[0]).toBe("missing  client id acme, id 0");
  expect(lines).toHaveLength(21);
  expect(lines[20]).toContain("and 2 more");
});
