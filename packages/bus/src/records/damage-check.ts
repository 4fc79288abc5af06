import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@conversation-export/runtime";
import type { TopicPartition } from "../message.ts";

/** true: damaged for good; pauses before another fetch. */
export type DamageCheck = (where: TopicPartition, offset: number) => Promise<boolean>;

const FETCHES = 3;
const PAUSE_MS = 200;

export const createDamageCheck = (deps: { readonly log: Logger }): DamageCheck => {
  const damaged = new Map<string, { readonly offset: number; readonly fetches: number }>();
  return async ({ topic, partition }, offset) => {
    const key = `${partition} ${topic}`;
    const before = damaged.get(key);
    const fetches = before?.offset === offset ? before.fetches + 1 : 1;
    deps.log.warn({ topic, partition, offset, attempt: fetches }, "a batch has a wrong checksum");
    if (fetches === FETCHES) {
      damaged.delete(key);
      return true;
    }
    damaged.set(key, { offset, fetches });
    await sleep(PAUSE_MS);
    return false;
  };
};
