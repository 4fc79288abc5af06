import { createLogger, ServiceError } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { createBusClients } from "./bus-clients.ts";

const log = createLogger({ service: "test", level: "silent" });
const signal = new AbortController().signal;

function setup(start: () => Promise<void>, patienceMs = 5) {
  const fatal: unknown[] = [];
  const client = { start, stop: () => Promise.resolve() };
  const bus = createBusClients({
    clients: [client],
    log,
    onFatal: (error) => fatal.push(error),
    patienceMs,
  });
  return { bus, fatal };
}

it("does not wait for the bus, jobs do", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { bus, fatal } = setup(() => promise);
  await bus.start();
  await expect(bus.connected(signal)).rejects.toMatchObject({ code: "kafka_unavailable", retryable: true });
  resolve();
  await bus.connected(signal);
  expect(fatal).toEqual([]);
});

it("ends the process when the bus refuses it, and not when it stops", async () => {
  const refused = new ServiceError("bus_connect", "no");
  const one = setup(() => Promise.reject(refused));
  await one.bus.start();
  await expect(one.bus.connected(signal)).rejects.toBe(refused);
  expect(one.fatal).toEqual([refused]);

  const { promise, reject } = Promise.withResolvers<void>();
  const other = setup(() => promise);
  await other.bus.start();
  await other.bus.stop();
  reject(refused);
  await expect(other.bus.connected(signal)).rejects.toBe(refused);
  expect(other.fatal).toEqual([]);
});

it("lets a job go that is cancelled", async () => {
  const { bus } = setup(() => new Promise(() => {}), 60_000);
  await bus.start();
  const cancelled = new Error("cancelled");
  await expect(bus.connected(AbortSignal.abort(cancelled))).rejects.toBe(cancelled);
});
