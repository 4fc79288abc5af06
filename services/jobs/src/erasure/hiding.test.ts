import { WarehouseError } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { createHiding, type HidingDeps } from "./hiding.ts";

const signal = new AbortController().signal;
const context = { signal, progress: () => Promise.resolve() };

const createDeps = (
  clients: readonly string[],
  fail: (step: string) => Error | undefined = () => undefined,
  begun = 1,
) => {
  const steps: string[] = [];
  let now = "";
  const step =
    (name: string, answer?: unknown) =>
    (...[, client]: unknown[]) => {
      if (name === "note") now = (client as { clientId: string }).clientId;
      const said = `${name} ${now}`;
      if (name !== "note") steps.push(said);
      const error = fail(said);
      return error === undefined ? Promise.resolve(answer) : Promise.reject(error);
    };
  const deps = {
    requests: {
      waitingClients: () => Promise.resolve(clients),
      begin: step("begin", begun),
      noteHidden: step("hidden", 1),
    },
    store: {
      collect: step("collect"),
      count: step("count", { conversations: 1, messages: 0, end_users: 0 }),
      hide: step("hide"),
    },
    subjects: { note: step("note", 1), suppress: step("suppress") },
    approval: step("screen", 0),
    judgement: { announce: step("announce") },
  } as unknown as HidingDeps;
  return { hide: () => createHiding(deps)(context), steps };
};

const stepsOf = (client: string): string[] =>
  ["collect", "screen", "begin", "hide", "hidden", "count", "suppress", "announce"].map(
    (step) => `${step} ${client}`,
  );

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

it("hides nothing when all of its requests wait or are refused meanwhile", async () => {
  const { hide, steps } = createDeps(["acme"], undefined, 0);
  expect(await hide()).toMatchObject({ hidden: 0 });
  expect(steps).toEqual(["collect acme", "screen acme", "begin acme"]);
});
