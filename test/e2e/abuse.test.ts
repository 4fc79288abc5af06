import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { chunkedOverLimit, type MalformedRequest, malformedRequests } from "../abuse/malformed-request.ts";
import { sendRaw } from "../abuse/send-raw.ts";
import { readMetric } from "../system/metrics-text.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { bySize, isFullSize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";

const HASTY = fileURLToPath(new URL("../abuse/hasty-server.ts", import.meta.url));
const REQUESTS = bySize(1_500, 10_000);
const CONNECTIONS = 16;
/** Longer than a request may take to arrive. */
const SLOW_MS = 45_000;
const GROWTH_BYTES = 96 * 1024 * 1024;

let system: System;
let api: ServiceProcess;
let port = 0;
let auth = "";

beforeAll(async () => {
  system = await startSystem("test-abuse");
  const key = await system.key("acme", ["export", "end_users", "compliance", "campaigns"]);
  auth = `Authorization: Bearer ${key}\r\n`;
  api = await system.service("export-api", {
    AUTH_FAILURE_LIMITS: "20/1m",
    // Only the full size waits the whole half minute for a request.
    ...(!isFullSize && { NODE_OPTIONS: `--import=${HASTY}` }),
  });
  port = Number(new URL(system.apiUrl).port);
});
afterAll(() => system?.stop());

const memory = async (): Promise<number> =>
  (await readMetric(api.metricsUrl, "process_resident_memory_bytes")) ?? 0;

const goodRequest = async (): Promise<number> => {
  const url = `${system.apiUrl}/v2/export/conversations?created_since=2024-01-01T00:00:00Z`;
  const headers = { authorization: auth.slice("Authorization: ".length).trim() };
  return (await fetch(url, { headers })).status;
};

const sendMany = async (requests: Iterator<MalformedRequest>, count: number) => {
  const statuses = new Map<string, Map<number | null, number>>();
  const wrong = new Map<string, string>();
  let left = count;
  const work = async (): Promise<void> => {
    while (left-- > 0) {
      const next = requests.next();
      if (next.done === true) return;
      const { kind, parts, statuses: right, hangUp = false } = next.value;
      const answer = await sendRaw(port, parts, { hangUp, deadlineMs: SLOW_MS });
      const seen = statuses.get(kind) ?? new Map<number | null, number>();
      statuses.set(kind, seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1));
      const fine = answer.status === null ? right.length === 0 : right.includes(answer.status);
      const body = answer.text.split("\r\n\r\n")[1] ?? "";
      const documented = answer.status === null || /^(?:[0-9a-f]+\r\n)?\{"errors":\[\{"type":"/.test(body);
      if (!fine || !documented) {
        wrong.set(`${kind}: ${answer.status}`, `${String(parts[0]).slice(0, 100)} … ${body.slice(0, 200)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
  return { statuses, wrong };
};

it("answers thousands of malformed requests in the documented form, and stays as it was", async () => {
  const requests = malformedRequests(seedOfRun("abuse"), auth);
  const slow = Array.from({ length: 5 }, () =>
    sendRaw(
      port,
      [
        `POST /api/v2/data-subject-request HTTP/1.1\r\nHost: a\r\n${auth}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
      ],
      { deadlineMs: SLOW_MS },
    ),
  );
  const slowHeaders = sendRaw(port, ["GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "], { deadlineMs: SLOW_MS });

  const first = await sendMany(requests, REQUESTS);
  // The process has the memory for this load now: the same load must not need more.
  const before = await memory();
  const second = await sendMany(requests, REQUESTS);
  const after = await memory();
  expect([...first.wrong, ...second.wrong]).toEqual([]);
  expect(second.statuses.size).toBeGreaterThan(10);
  expect(second.statuses.get("keys that are none")?.get(429) ?? 0).toBeGreaterThan(0);
  expect(after - before).toBeLessThan(GROWTH_BYTES);

  const chunked = await Promise.all(
    Array.from({ length: 8 }, () => sendRaw(port, chunkedOverLimit(auth).parts, { deadlineMs: SLOW_MS })),
  );
  for (const { status, text } of chunked) {
    // Unread bytes reset the connection, which may lose the answer.
    expect([413, null]).toContain(status);
    if (status === 413)
      expect(text).toMatch(
        /"type":"content_too_large".*limit: (4000000|65536) bytes; actual length: \d+ bytes/,
      );
  }
  expect(chunked.some(({ status }) => status === 413)).toBe(true);

  for (const { status } of await Promise.all([...slow, slowHeaders])) expect(status).toBe(408);
  expect(await goodRequest()).toBe(200);
  expect(await readMetric(api.metricsUrl, "conversation_export_api_errors_total")).toBeNull();
  // A page ends a moment after its reader has the last byte.
  await expect.poll(() => readMetric(api.metricsUrl, "conversation_export_api_pages_in_flight")).toBe(0);
  const log = readFileSync(join(system.logFolder, "export-api.log"), "utf8");
  expect(log).not.toContain(auth.slice(-12).trim());
  expect(log).not.toMatch(/"level":"(?:error|fatal)"/);
});
