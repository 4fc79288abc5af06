import { expect, it } from "vitest";
import type { Session } from "../session/session.ts";
import { createReconcileStore } from "./reconcile-store.ts";

it("saves over what a clock that was ahead has saved", async () => {
  const versions: number[] = [];
  const session = {
    with: () => session,
    names: { target: (table: string) => table },
    rows: () => Promise.resolve([{ version: String(Math.max(0, ...versions)) }]),
    insert: (_: string, { rows }: { readonly rows: readonly { readonly version: number }[] }) =>
      Promise.resolve(versions.push(...rows.map(({ version }) => version))),
  };
  let now = 1_000_000;
  const store = createReconcileStore({
    session: session as unknown as Session,
    now: () => now,
    holder: "own",
  });
  const offsets = [0, 1].map((partition) => ({ topic: "messages", topicId: null, partition, offset: 5 }));
  await store.saveUntil({ until: 3_600_000, offsets });
  now = 1_000;
  await store.saveUntil({ until: 0, offsets });
  expect(versions).toEqual([1_000_000, 1_000_000, 1_000_001, 1_000_001]);
});
