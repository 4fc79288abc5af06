import { READABLE_FIRST } from "@conversation-export/domain";
import { expect, it } from "vitest";
import { clusterNames } from "../../session/cluster-names.ts";
import type { Session } from "../../session/session.ts";
import { BEGUN_ROWS } from "../job-keys.ts";
import { createWrongRows } from "./wrong-rows.ts";

it("deletes what makes a record readable before its other rows", async () => {
  const deletedFrom: unknown[] = [];
  const session = {
    names: clusterNames({ cluster: null }),
    with: () => session,
    rows: (name: string) =>
      Promise.resolve(name === "job_keys.kept" ? [{ n: BEGUN_ROWS }] : [{ month: 202610 }]),
    commandEverywhere: (
      _: string,
      query: string,
      { parameters }: { readonly parameters: { readonly table: string } },
    ) => {
      expect(query).toContain(parameters.table);
      deletedFrom.push(parameters.table);
      return Promise.resolve();
    },
  } as unknown as Session;
  const { erase } = createWrongRows({ session, runUpload: () => Promise.resolve(), holder: "here" });
  await erase("run", new AbortController().signal);
  expect(deletedFrom).toEqual(READABLE_FIRST.map(({ name }) => name));
  expect(deletedFrom.indexOf("conversations")).toBeLessThan(deletedFrom.indexOf("conversation_updates"));
});
