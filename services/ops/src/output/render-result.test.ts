import { expect, it } from "vitest";
import { renderResult } from "./render-result.ts";

it("gives each field a line, and of counts those that are not 0", () => {
  const text = renderResult({
    dryRun: true,
    events: { read: 12_345, suppressed: 0 },
    rows: { inserted: { messages: 2, handoffs: 1 }, deleted: { messages: 0 } },
    deletableSince: null,
    problems: [],
  });
  expect(text.split("\n")).toEqual([
    "dry run          yes",
    "events           read 12,345",
    "rows inserted    messages 2, handoffs 1",
    "rows deleted     0",
    "deletable since  -",
    "problems         -",
  ]);
});

it("shows the first entries of a list and says how many are left", () => {
  const missing = Array.from({ length: 22 }, (_, id) => ({ clientId: "acme", id: String(id) }));
  const lines = renderResult({ missing }).split("\n");
  expect(lines[0]).toBe("missing  client id acme, id 0");
  expect(lines).toHaveLength(21);
  expect(lines[20]).toContain("and 2 more");
});
