import type { ErasureStore } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { withFoundNoted } from "./found-noted.ts";

it("notes what was found later before it is erased, and when it is gone, under the id of the job", async () => {
  const said: string[] = [];
  let found = 2;
  const store = {
    begin: () => Promise.resolve({ requests: 1, found, again: 0 }),
    settleFound: () => {
      said.push("settled");
      return Promise.resolve();
    },
  } as unknown as ErasureStore;
  const audit = {
    note: (notes: readonly { runId: string; command: string; state: string }[]) => {
      said.push(...notes.map(({ runId, command, state }) => `${runId} ${command} ${state}`));
      return Promise.resolve();
    },
  };
  const noting = withFoundNoted(store, audit);
  const { signal } = new AbortController();
  expect(await noting.begin({ id: "erasure-7/a-run", erases: true })).toMatchObject({ found: 2 });
  await noting.begin({ id: "erasure-7/another", erases: true });
  await noting.settleFound({ id: "erasure-7/another", erases: true }, signal);
  expect(said).toEqual([
    "erasure-7 erasure run begun",
    "erasure-7 erasure run begun",
    "settled",
    "erasure-7 erasure run done",
  ]);
  // A dry run never ends what it begins.
  await noting.begin({ id: "erasure-9/a-run", erases: false });
  found = 0;
  await noting.begin({ id: "erasure-8/a-run", erases: true });
  expect(said).toHaveLength(4);
});
