import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { choosePorts, isPortFree } from "./ports.ts";

async function occupy(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

test("chooses different free ports below the range of outgoing connections", async () => {
  const names = ["a", "b", "c", "d", "e"] as const;
  const ports = Object.values(await choosePorts({ names, fixed: {} }));
  expect(new Set(ports).size).toBe(names.length);
  for (const port of ports) {
    expect(port).toBeGreaterThanOrEqual(20_000);
    expect(port).toBeLessThan(32_000);
    expect(await isPortFree(port)).toBe(true);
  }
});

test("gives no port twice while nothing listens on it", async () => {
  const names = Array.from({ length: 40 }, (_, index) => `port${index}`);
  const chosen = await Promise.all(names.map(() => choosePorts({ names, fixed: {} })));
  const ports = chosen.flatMap((one) => Object.values(one));
  expect(new Set(ports).size).toBe(names.length ** 2);
});

test("names a fixed port that is in use", async () => {
  const used = await occupy();
  await expect(choosePorts({ names: ["kafka"], fixed: { kafka: used } })).rejects.toThrow(
    `port ${used} (kafka) of 127.0.0.1 is in use`,
  );
});

test("takes a preferred port when it is free, another when it is not", async () => {
  const used = await occupy();
  const { a: free } = await choosePorts({ names: ["a"], fixed: {} });
  const ports = await choosePorts({ names: ["a", "b"], fixed: {}, preferred: { a: free, b: used } });
  expect(ports.a).toBe(free);
  expect(ports.b).not.toBe(used);
});

test("a fixed port is never given to another name", async () => {
  const { a: free } = await choosePorts({ names: ["a"], fixed: {} });
  const ports = await choosePorts({ names: ["a", "b"], fixed: { b: free }, preferred: { a: free } });
  expect(ports.b).toBe(free);
  expect(ports.a).not.toBe(free);
  await expect(choosePorts({ names: ["a", "b"], fixed: { a: free, b: free } })).rejects.toThrow(
    "asked for twice",
  );
});
