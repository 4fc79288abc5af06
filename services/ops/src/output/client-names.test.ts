import { expect, it } from "vitest";
import { namedClients } from "./client-names.ts";

it("names a few clients, and shows which blank is meant", () => {
  const names = ["Demo-Client", "demo-client ", "z\u00a0\u001b[2J", "y".repeat(100)];
  expect(namedClients(names.map((clientId, records) => ({ clientId, records })))).toBe(
    '4 not registered, with records: "Demo-Client" (0), "demo-client " (1), "z\\u00a0\\u001b[2J" (2) and 1 more',
  );
  expect(namedClients([{ clientId: "y".repeat(100), records: 1 }])).toContain(`"${"y".repeat(60)}…" (1)`);
  expect(namedClients([{ clientId: "Zürich", records: 1 }])).toContain('"Zürich" (1)');
  for (const unseen of ["\u3164", "\u2800", "\u034f", "\ufe0f", "\u{e0100}"])
    expect(namedClients([{ clientId: `demo${unseen}`, records: 1 }])).toMatch(
      /^1 not registered, with records: "demo(\\u[\da-f]{4})+" \(1\)$/,
    );
});
