import { setTimeout as sleep } from "node:timers/promises";
import { createAdmin, createProducer } from "@conversation-export/bus";
import { createLogger } from "@conversation-export/runtime";
import { compareExports } from "../compare/compare-exports.ts";
import { fold } from "../reference/index.ts";
import { type BusEvent, createSample, type SampleOptions } from "../sample/index.ts";
import { createDelivery } from "../system/deliver.ts";
import { GROUP, TOPICS } from "../system/system.ts";
import { until } from "../system/until.ts";

export const CLIENTS = ["acme", "globex"] as const;
/** Enough for two hours. */
const CONVERSATIONS = 100_000;
const CHUNK = 40;
const PAUSE_MS = 400;

/** About a hundred events a second. */
export type Events = {
  sent(): number;
  sendBroken(wanted: boolean): void;
  /** Resolves when all sent events are acknowledged. */
  pause(): Promise<void>;
  resume(): void;
  finish(): Promise<void>;
  differences(apiUrl: string, keys: ReadonlyMap<string, string>): Promise<string[]>;
  stop(): Promise<void>;
};

/** Nobody else may write to the topics. */
export const startEvents = async (deps: {
  readonly brokers: readonly string[];
  readonly partitions: number;
  readonly sample: Partial<SampleOptions>;
  readonly withBroken: boolean;
}): Promise<Events> => {
  const log = createLogger({ service: "test", level: "error" });
  const connection = { brokers: deps.brokers, clientId: "test", log };
  const producer = createProducer(connection);
  const admin = createAdmin(connection);
  await Promise.all([producer.start(), admin.start()]);
  const delivery = createDelivery({ producer, partitions: deps.partitions });
  const sample = createSample({ conversations: CONVERSATIONS, clients: CLIENTS, ...deps.sample });
  let isDone = false;
  let isPaused = false;
  let underWay: Promise<void> = Promise.resolve();
  let { withBroken } = deps;
  const send = async (): Promise<void> => {
    let chunk: BusEvent[] = [];
    for (const event of sample) {
      if (event.poison && !withBroken) continue;
      chunk.push(event);
      if (chunk.length < CHUNK) continue;
      underWay = delivery.send(chunk);
      await underWay;
      chunk = [];
      do await sleep(PAUSE_MS);
      while (isPaused && !isDone);
      if (isDone) return;
    }
    throw new Error("all events of the sample were sent: it is too small for these steps");
  };
  const sending = send();
  // `finish` reports the error.
  sending.catch(() => undefined);
  return {
    sent: () => delivery.delivered.length,
    sendBroken: (wanted) => {
      withBroken = wanted;
    },
    pause: async () => {
      isPaused = true;
      await underWay;
    },
    resume: () => {
      isPaused = false;
    },
    finish: async () => {
      isDone = true;
      await sending;
      await until("ingest has read everything", 120_000, async () => {
        const lags = await admin.fetchLag(GROUP, Object.values(TOPICS));
        return lags.every(({ lag }) => lag === 0);
      });
    },
    differences: async (apiUrl, keys) => {
      const differing = await compareExports(apiUrl, fold(delivery.delivered), keys);
      return differing.map((one) => JSON.stringify(one));
    },
    stop: async () => {
      isDone = true;
      await sending.catch(() => undefined);
      await Promise.all([producer.stop(), admin.stop()]);
    },
  };
};
