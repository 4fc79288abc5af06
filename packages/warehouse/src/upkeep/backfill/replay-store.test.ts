import { expect, it } from "vitest";
import type { Session } from "../../session/session.ts";
import { createReplayStore, deadLetterKey } from "./replay-store.ts";

type Row = { readonly arrived_at: string; readonly offset: number };

it.each([
  [null, 0],
  [-1, 0],
  [0, 0],
  [1_764_000_000_000, 1_764_000_000_000],
  [4_291_747_200_000, 0],
  // A clock in microseconds.
  [1_764_000_000_000_000, 0],
])("records and finds a replay of what arrived at %s", async (arrivedAt, stored) => {
  const rows: Row[] = [];
  const session = {
    with: () => session,
    insert: (_: string, given: { readonly rows: readonly Row[] }) =>
      Promise.resolve(rows.push(...given.rows)),
    rows: () =>
      Promise.resolve(rows.map((row) => ({ ...row, arrived_ms: String(Date.parse(row.arrived_at)) }))),
  };
  const store = createReplayStore({ session: session as unknown as Session, now: () => 1_764_000_000_000 });
  const deadLetter = {
    topic: "messages",
    arrival: { partition: 1, offset: 7 },
    arrivedAt,
    replays: 0,
    place: { partition: 0, offset: 3 },
  };
  await store.add([deadLetter], "run", null);
  expect(rows).toMatchObject([{ arrived_at: new Date(stored).toISOString() }]);
  const found = await store.find([deadLetter]);
  expect(found.get(deadLetterKey(deadLetter))).toEqual({ runId: "run", place: deadLetter.place });
});
