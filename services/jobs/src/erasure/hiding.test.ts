import { WarehouseError } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { createHiding, type HidingDeps } from "./hiding.ts";

const signal = new AbortController().signal;
const context = { signal, progress: () => Promise.resolve() };

/** Steps as they are done, for clients with one request each; `fail` decides what a step throws. */
const createDeps = (
  clients: readonly string[],
  fail: (step: string) => Error | undefined = () => undefined,
) => {
  const steps: string[] = [];
  const clientOf = new Map<string, string>();
  let runs = 0;
  const step =
    (name: string, answer: (runId: string) => unknown = () => undefined) =>
    (runId = "") => {
      const said = `${name} ${clientOf.get(runId) ?? ""}`.trim();
      steps.push(said);
      const error = fail(said);
      return error === undefined ? Promise.resolve(answer(runId)) : Promise.reject(error);
    };
  const deps = {
    requests: {
      waitingClients: () => Promise.resolve(clients),
      begin: step("begin", () => 1),
      noteHidden: step("hidden", () => 1),
    },
    store: {
      collect: step("collect", () => ({ conversations: 1, messages: 0, endUsers: 0 })),
      hide: step("hide"),
      end: () => Promise.resolve(),
    },
    subjects: {
      note: (runId: string, { clientId }: { readonly clientId: string }) => {
        clientOf.set(runId, clientId);
        return Promise.resolve(1);
      },
      suppressHidden: step("suppress"),
    },
    approval: () => ({
      isLeftOut: () => false,
      hold: step("screen", () => ({ held: 0, leftOut: 0 })),
    }),
    judgement: { tell: step("tell") },
    newRun: (prefix: string) => `${prefix}${(runs += 1)}`,
  } as unknown as HidingDeps;
  return { hide: () => createHiding(deps)("job/", context), steps };
};

const stepsOf = (client: string): string[] => [
  `collect ${client}`,
  `screen ${client}`,
  `begin ${client}`,
  `hide ${client}`,
  `hidden ${client}`,
  `suppress ${client}`,
  "tell",
];

it("hides what it has begun, client by client, and tells the writers", async () => {
  const { hide, steps } = createDeps(["acme", "globex"]);
  expect(await hide()).toMatchObject({ hidden: 2, found: { conversations: 2 }, failed: new Map() });
  expect(steps).toEqual([...stepsOf("acme"), ...stepsOf("globex")]);
});

it("hides those of other clients when one client's are too much for ClickHouse", async () => {
  const error = new WarehouseError("warehouse_query_failed", "MEMORY_LIMIT_EXCEEDED", true, undefined);
  const { hide, steps } = createDeps(["acme", "globex"], (step) =>
    step === "collect acme" ? error : undefined,
  );
  expect(await hide()).toMatchObject({ hidden: 1, failed: new Map([["acme", error]]) });
  expect(steps).toEqual(["collect acme", ...stepsOf("globex")]);
});

it("hides nothing of a run that could not begin all of its requests", async () => {
  const { hide, steps } = createDeps(["acme"], (step) =>
    step === "begin acme" ? new Error("is not begun") : undefined,
  );
  await expect(hide()).rejects.toThrow("is not begun");
  expect(steps).not.toContain("hide acme");
});
