import type { ErasureStore } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { withFoundNoted } from "./found-noted.ts";

it("notes what was found later before it is erased, and when it is gone, under the id of the job", async () => {
  const said: string[] = [];
  let found = 2;
  const store = {
    begin: () => Promise.resolve({ requests: 1, named: 1, foundEndUsers: 0, ids: found }),
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
  expect(await noting.begin("erasure-7/a-run", true)).toMatchObject({ ids: 2 });
  // The next attempt of the job.
  await noting.begin("erasure-7/another", true);
  await noting.settleFound("erasure-7/another", signal);
  expect(said).toEqual([
    "erasure-7 erasure run begun",
    "erasure-7 erasure run begun",
    "settled",
    "erasure-7 erasure run done",
  ]);
  // A dry run, which never ends what it would have begun.
  await noting.begin("erasure-9/a-run", false);
  found = 0;
  await noting.begin("erasure-8/a-run", true);
  expect(said).toHaveLength(4);
});
