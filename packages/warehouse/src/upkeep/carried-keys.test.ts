import { expect, it } from "vitest";
import type { Session } from "../session/session.ts";
import { CARRIED, createCarriedKeys } from "./carried-keys.ts";

it.each([false, true])("removes the keys that it has noted, also when it fails: %s", async (fails) => {
  const sent: string[] = [];
  const note = (name: string, run: unknown) => {
    sent.push(`${name} ${String(run)}`);
    return Promise.resolve();
  };
  type Parameters = { readonly parameters: { readonly run: string } };
  const session = {
    with: () => session,
    names: { target: (table: string) => table },
    insert: (name: string, { rows }: { readonly rows: readonly { readonly run_id: string }[] }) =>
      note(name, rows[0]?.run_id),
    command: (name: string, _: string, { parameters }: Parameters) => note(name, parameters.run),
    commandEverywhere: (name: string, _: string, { parameters }: Parameters) => note(name, parameters.run),
  };
  const keys = createCarriedKeys({ session: session as unknown as Session, prefix: "p-", holder: "here" });
  const working = keys.during(
    [{ kind: CARRIED, clientId: "acme", id: "m", date: 0 }],
    { type: "message.exported", signal: undefined },
    () => (fails ? Promise.reject(new Error("away")) : Promise.resolve("done")),
  );
  expect(await working.catch(() => "failed")).toBe(fails ? "failed" : "done");
  const runs = sent.map((one) => one.replace(/^\S+ /, ""));
  expect(sent.map((one) => one.replace(/ .*/, ""))).toEqual(["keys.note", "keys.dates", "job_keys.forget"]);
  expect(runs[0]).toMatch(/^p-here\//);
  expect(new Set(runs).size).toBe(1);
});
