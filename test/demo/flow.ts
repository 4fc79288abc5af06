import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Admin, type Connection, createProducer } from "@conversation-export/bus";
import { createPlaces, sendEvents } from "../system/deliver.ts";
import { GROUP, TOPICS } from "../system/system.ts";
import type { BusEvent, Sample } from "../sample/index.ts";
import { count } from "./print.ts";
import { createProgress } from "./progress.ts";
import type { Reference } from "./reference.ts";

const STALLED_MS = 60_000;
const POLL_MS = 200;

export type FlowDeps = {
  readonly connection: Connection;
  readonly admin: Admin;
  readonly reference: Reference;
  readonly partitions: number;
  /** Exists while ingest runs. */
  readonly ingestPidFile: string;
};

/** Returns the bytes of all values. */
export const carry = async (deps: FlowDeps, sample: Sample, total: number): Promise<number> => {
  const { connection, admin, reference } = deps;
  const progress = createProgress(process.stdout, {
    names: ["produced", "ingested", "reference"],
    total,
    unit: "events",
  });
  const producer = createProducer(connection);
  let bytes = 0;

  const counted = function* (): Generator<BusEvent> {
    for (const event of sample) {
      bytes += event.value?.length ?? 0;
      yield event;
    }
  };

  const produce = async (): Promise<void> => {
    await producer.start();
    await sendEvents({ producer, placeOf: createPlaces(deps.partitions) }, counted(), (sent) =>
      progress.update("produced", sent),
    );
  };

  const followIngest = async (): Promise<void> => {
    let last = 0;
    let movedAt = performance.now();
    while (last < total) {
      const offsets = await admin.fetchCommitted(GROUP, Object.values(TOPICS));
      const committed = offsets.reduce((sum, { offset }) => sum + (offset ?? 0), 0);
      const now = performance.now();
      if (committed > last) movedAt = now;
      last = committed;
      progress.update("ingested", committed);
      if (!existsSync(deps.ingestPidFile)) throw new Error("ingest has ended");
      if (now - movedAt > STALLED_MS) throw new Error(`ingest stands still at ${count(last)} events`);
      await sleep(POLL_MS);
    }
  };

  const followReference = async (): Promise<void> => {
    const ready = reference.ready.then(() => true);
    while (!(await Promise.race([ready, sleep(POLL_MS, false)]))) {
      progress.update("reference", reference.folded());
    }
    progress.update("reference", total);
  };

  try {
    await Promise.all([produce(), followIngest(), followReference()]);
    return bytes;
  } finally {
    progress.stop();
    await producer.stop();
  }
};
