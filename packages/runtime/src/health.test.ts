import { afterEach, expect, it } from "vitest";
import { createHealthServer, type HealthChecks } from "./health.ts";
import { createLogger, createMetrics } from "./index.ts";

const log = createLogger({ service: "test", level: "silent" });
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const startServer = async (checks: HealthChecks) => {
  const metrics = createMetrics({ service: "test", withProcess: true });
  const server = createHealthServer({ host: "127.0.0.1", port: 0, metrics, checks, log });
  const { port } = await server.start();
  stops.push(() => server.stop());
  return { metrics, url: `http://127.0.0.1:${port}` };
};

it("answers liveness and readiness as they are at the moment, with the reason", async () => {
  let ready: boolean | string = "no partitions yet";
  const { url } = await startServer({ live: () => true, ready: () => ready });
  expect((await fetch(`${url}/live`)).status).toBe(200);
  const refused = await fetch(`${url}/ready`);
  expect([refused.status, await refused.text()]).toEqual([503, "no partitions yet\n"]);
  ready = true;
  expect((await fetch(`${url}/ready`)).status).toBe(200);
});

it("serves what was registered and the process metrics, labelled with the service", async () => {
  const { url, metrics } = await startServer({ live: () => true, ready: () => true });
  metrics.counter("things_total", "Things.", ["kind"]).inc({ kind: "a" }, 2);
  metrics.gauge("level", "Level.", [], (gauge) => gauge.set(7));
  metrics.histogram("size_bytes", "Size.", [], [1, 10]).observe(5);
  const response = await fetch(`${url}/metrics`);
  const body = await response.text();
  expect(response.headers.get("content-type")).toContain("text/plain");
  expect(body).toContain('things_total{kind="a",service="test"} 2');
  expect(body).toContain('level{service="test"} 7');
  expect(body).toMatch(/size_bytes_bucket\{.*le="10".*\} 1/);
  expect(body).toContain("process_resident_memory_bytes");
});

it("answers 500 when a check throws, 404 and 405 otherwise, and goes on", async () => {
  const { url } = await startServer({
    live: () => {
      throw new Error("bug");
    },
    ready: () => false,
  });
  expect((await fetch(`${url}/live`)).status).toBe(500);
  expect((await fetch(`${url}/ready`)).status).toBe(503);
  expect((await fetch(`${url}/nothing`)).status).toBe(404);
  expect((await fetch(`${url}/ready`, { method: "POST" })).status).toBe(405);
});

it("rejects when the port is taken", async () => {
  const { url } = await startServer({ live: () => true, ready: () => true });
  const second = createHealthServer({
    host: "127.0.0.1",
    port: Number(new URL(url).port),
    metrics: createMetrics({ service: "test" }),
    checks: { live: () => true, ready: () => true },
    log,
  });
  await expect(second.start()).rejects.toThrow("EADDRINUSE");
});
