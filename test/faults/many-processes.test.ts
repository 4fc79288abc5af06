import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fold } from "../reference/index.ts";
import { compareExports } from "../compare/compare-exports.ts";
import { fetchPatiently } from "../compare/patient-fetch.ts";
import { createDelivery } from "../system/deliver.ts";
import { ops } from "../system/ops.ts";
import type { ServiceName, ServiceProcess } from "../system/service-process.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { createSample } from "../sample/index.ts";

const CLIENTS = ["acme", "globex"];
const CONVERSATIONS = bySize(1_000, 40_000);
const KILLS = bySize(1, 5);
const PATH =
  "v2/export/messages?created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z&page_size=100";
const PATIENT = fileURLToPath(new URL("./patient-server.ts", import.meta.url));

const ENV: Readonly<Record<ServiceName, Readonly<Record<string, string>>>> = {
  ingest: { BATCH_MAX_RECORDS: "500", BATCH_MAX_AGE_MS: "100", KAFKA_SESSION_TIMEOUT_MS: "3000" },
  "export-api": { NODE_OPTIONS: `--import=${PATIENT}` },
  jobs: { JOB_LOCK_MS: "2000", WINDOWS_INTERVAL_SECONDS: "1", COMPACT_INTERVAL_SECONDS: "1" },
};

type Comparison = {
  readonly missing: number;
  readonly hours: readonly { readonly clients: readonly { readonly readable: number }[] }[];
};

let system: System;
let seed: string;
const keys = new Map<string, string>();
const running = new Map<ServiceName, { process: ServiceProcess; apiUrl: string }[]>();

const of = (name: ServiceName) => running.get(name) ?? [];
const add = async (name: ServiceName): Promise<void> => {
  const one = await system.another(name, ENV[name]);
  running.set(name, [...of(name), one]);
};
const killOne = async (name: ServiceName): Promise<void> => {
  const [first, ...others] = of(name);
  running.set(name, others);
  await first?.process.kill("SIGKILL");
};

beforeAll(async () => {
  seed = seedOfRun("many processes");
  system = await startSystem("test-many-processes");
  for (const client of CLIENTS) keys.set(client, await system.key(client));
  const names: ServiceName[] = ["ingest", "ingest", "ingest", "export-api", "export-api", "jobs", "jobs"];
  await Promise.all(names.map(add));
});
afterAll(() => system?.stop());

/** Asks the processes in turn, and the next when one refuses the connection. */
const createClient = () => {
  const seen = {
    statuses: new Map<number, number>(),
    served: new Map<string, number>(),
    refused: 0,
    broken: 0,
  };
  const count = <K>(map: Map<K, number>, key: K): void => void map.set(key, (map.get(key) ?? 0) + 1);
  let isDone = false;
  let turn = 0;
  const ask = async (): Promise<void> => {
    const apis = addresses;
    for (let attempt = 0; attempt < apis.length; attempt += 1) {
      turn += 1;
      const apiUrl = apis[turn % apis.length] ?? "";
      try {
        const response = await fetchPatiently(`${apiUrl}/${PATH}`, {
          headers: { authorization: `Bearer ${keys.get("acme")}` },
        });
        JSON.parse(await response.text());
        count(seen.statuses, response.status);
        count(seen.served, apiUrl);
        return;
      } catch (error) {
        const { code } = ((error as Error).cause ?? {}) as { code?: string };
        if (code === "ECONNREFUSED") seen.refused += 1;
        else seen.broken += 1;
      }
    }
    throw new Error("no process answers");
  };
  const addresses = of("export-api").map(({ apiUrl }) => apiUrl);
  const asking = (async () => {
    while (!isDone) {
      await ask();
      await sleep(20);
    }
  })();
  return {
    seen,
    addresses,
    stop: () => {
      isDone = true;
      return asking;
    },
  };
};

describe("three processes of ingest, two of export-api, two of jobs", () => {
  it("lose nothing and write nothing twice when one of each is killed under load", async () => {
    const delivery = createDelivery(system);
    const client = createClient();
    const sample = createSample({
      seed,
      conversations: CONVERSATIONS,
      messagesPerConversation: 3,
      clients: CLIENTS,
    });
    const total = sample.totals().events;
    const sending = delivery.send(sample);
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const from = (total * (kill - 1)) / (KILLS + 1);
      await until("ingest gets on", 60_000, async () => (await system.committed()) > from);
      const names = ["ingest", "jobs", "export-api"] as const;
      await Promise.all(names.map(killOne));
      await until(
        "the rest gets on",
        60_000,
        async () => (await system.committed()) > from + total / (KILLS + 1) / 2,
      );
      await Promise.all(names.map(add));
      client.addresses.splice(0, client.addresses.length, ...of("export-api").map(({ apiUrl }) => apiUrl));
    }
    await sending;
    await system.caughtUp(120_000);

    const members = of("ingest");
    expect(members).toHaveLength(3);
    const expected = fold(delivery.delivered);
    const [restarted] = of("export-api").slice(-1);
    expect(await compareExports(restarted?.apiUrl ?? "", expected, keys)).toEqual([]);
    const { statuses, served, refused, broken } = client.seen;
    const hasShare = ({ apiUrl }: { readonly apiUrl: string }): boolean =>
      (served.get(apiUrl) ?? 0) > [...served.values()].reduce((sum, one) => sum + one, 0) / 10;
    // On a busy machine the newest process has answered few requests by now.
    await until("each process answers its share", 60_000, () => of("export-api").every(hasShare));
    await client.stop();
    expect([...statuses.keys()]).toEqual([200]);
    expect(refused).toBeGreaterThan(0);
    // Only requests in flight in the killed process may break.
    expect(broken).toBeLessThanOrEqual(KILLS);

    // Any process takes over a job, also when its process dies.
    const operator = {
      CLICKHOUSE_URL: system.stack.clickhouse.url("migrator"),
      KAFKA_BROKERS: system.stack.kafka.brokers.join(","),
      REDIS_URL: system.stack.redis.url,
    };
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const compared = ops(
      operator,
      "reconcile",
      "--since",
      since,
      "--until",
      new Date().toISOString(),
      "--json",
    );
    await killOne("jobs");
    const { result } = JSON.parse(await compared) as { result: Comparison };
    expect(result.missing).toBe(0);
    const readable = result.hours.flatMap(({ clients }) => clients.map((one) => one.readable));
    expect(readable.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(total / 2);
  });
});
