import { expect, it } from "vitest";
import { clusterNames } from "../../session/cluster-names.ts";
import type { Session } from "../../session/session.ts";
import { createKeyedDeletion } from "./keyed-deletion.ts";

const signal = new AbortController().signal;
const deletion = { dropMasked: () => Promise.resolve() };

it("waits for all replicas behind the deletions, of tables that have some", async () => {
  const sent: unknown[] = [];
  const session = {
    names: clusterNames({ cluster: null }),
    rows: () => Promise.resolve([{ name: "messages" }]),
    commandEverywhere: (_: string, query: string, { settings }: { readonly settings: unknown }) => {
      sent.push([query.trim(), settings]);
      return Promise.resolve();
    },
  } as unknown as Session;
  await createKeyedDeletion({ session, deletion }).onAllReplicas(["messages", "landing"], signal);
  expect(sent).toEqual([["ALTER TABLE messages DELETE WHERE false", { mutations_sync: "2" }]]);
});

it("waits for its own deletions alone, while they run", async () => {
  const asked: string[] = [];
  const answers = [[{ failing: 0 }], []];
  const session = {
    names: clusterNames({ cluster: null }),
    rows: (_: string, query: string) => {
      asked.push(query);
      return Promise.resolve(answers.shift());
    },
  } as unknown as Session;
  await createKeyedDeletion({ session, deletion }).settled("messages", signal);
  expect(asked).toHaveLength(2);
  expect(asked[0]).toContain("database = currentDatabase()");
});
