import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createClientMonitor } from "./client-monitor.ts";
import { createTestMetrics } from "../test-metrics.fixture.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const setUp = () => {
  const registered = new Set(["demo-client"]);
  const added: unknown[] = [];
  const warnings: string[] = [];
  const { metrics, log, linesOf } = createTestMetrics();
  log.warn = (_: unknown, message?: string) => void warnings.push(message ?? "");
  const world = { isAway: false, refusesNames: false, whileAdding: () => {} };
  const watch = createClientMonitor({
    store: {
      registered: () =>
        world.isAway ? Promise.reject(new Error("away")) : Promise.resolve(new Set(registered)),
      add: (day, clients) => {
        world.whileAdding();
        if (world.refusesNames) return Promise.reject(new Error("full"));
        added.push([day, clients]);
        return Promise.resolve();
      },
    },
    metrics,
    log,
    now: () => Date.parse("2026-10-20T23:59:59Z"),
  });
  const count = () => linesOf("conversation_export_ingest_unregistered_client");
  return { watch, world, registered, added, warnings, count };
};

it("counts what comes of clients that are not registered, and stores their names", async () => {
  const { watch, registered, added, count } = setUp();
  await watch.start();
  await vi.advanceTimersByTimeAsync(0);
  for (const id of ["demo-client", "Demo-Client", "demo-client ", "demo-client\u200b", "Demo-Client", "soon"])
    watch.note("messages", id);
  registered.add("soon");
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await count()).toEqual([expect.stringMatching(/topic="messages".* 5$/)]);
  expect(added).toEqual([
    [
      "2026-10-20",
      [
        { clientId: "Demo-Client", records: 2 },
        { clientId: "demo-client ", records: 1 },
        { clientId: "demo-client\u200b", records: 1 },
      ],
    ],
  ]);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(added).toHaveLength(1);
  await watch.stop();
});

it("keeps names until they are stored, and stores the last ones when it stops", async () => {
  const { watch, world, added, warnings } = setUp();
  await watch.start();
  await vi.advanceTimersByTimeAsync(0);
  world.refusesNames = true;
  watch.note("messages", "Demo-Client");
  world.whileAdding = () => watch.note("messages", "meanwhile");
  await vi.advanceTimersByTimeAsync(30_000);
  expect(warnings).toHaveLength(1);
  world.whileAdding = () => {};
  world.refusesNames = false;
  await vi.advanceTimersByTimeAsync(30_000);
  const stored = { clientId: "Demo-Client", records: 1 };
  expect(added).toEqual([["2026-10-20", [stored, { clientId: "meanwhile", records: 1 }]]]);
  watch.note("messages", "last");
  await watch.stop();
  expect(added.slice(1)).toEqual([["2026-10-20", [{ clientId: "last", records: 1 }]]]);
});

it("counts nothing before it knows who is registered, and warns once while it cannot ask", async () => {
  const { watch, world, warnings, count } = setUp();
  world.isAway = true;
  await watch.start();
  await vi.advanceTimersByTimeAsync(30_000);
  watch.note("messages", "Demo-Client");
  expect(await count()).toEqual([]);
  expect(warnings).toHaveLength(1);
  world.isAway = false;
  await vi.advanceTimersByTimeAsync(30_000);
  watch.note("messages", "Demo-Client");
  expect(await count()).toHaveLength(1);
  await watch.stop();
});
