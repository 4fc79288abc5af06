import type { Redis as Client } from "ioredis";
import { KEY_PREFIX } from "../contract/job-queues.ts";
import { JOB_NAMES, type JobName } from "../contract/job.ts";

const HELD_SECONDS = 86_400;

const keyOf = (name: JobName): string => `${KEY_PREFIX}:job-held:${name}`;

export type HeldSchedule = {
  readonly name: JobName;
  readonly job: string;
  /** `code: message` */
  readonly reason: string;
  readonly until: Date;
};

const readHold = (text: string): Pick<HeldSchedule, "job" | "reason"> =>
  JSON.parse(text) as Pick<HeldSchedule, "job" | "reason">;

export type HeldSchedules = ReturnType<typeof createHeldSchedules>;

export const createHeldSchedules = (client: Client) => ({
  hold: async (name: JobName, job: string, reason: string): Promise<void> => {
    await client.set(keyOf(name), JSON.stringify({ job, reason }), "EX", HELD_SECONDS);
  },
  isHeld: async (name: JobName): Promise<boolean> => (await client.exists(keyOf(name))) === 1,
  /** Only if this job holds it. */
  lift: async (name: JobName, job: string): Promise<void> => {
    const text = await client.get(keyOf(name));
    if (text !== null && readHold(text).job === job) await client.del(keyOf(name));
  },
  list: async (): Promise<readonly HeldSchedule[]> => {
    const held = await Promise.all(
      JOB_NAMES.map(async (name) => {
        const [text, leftMs] = await Promise.all([client.get(keyOf(name)), client.pttl(keyOf(name))]);
        if (text === null) return [];
        const { job, reason } = readHold(text);
        return [{ name, job, reason, until: new Date(Date.now() + Math.max(leftMs, 0)) }];
      }),
    );
    return held.flat();
  },
});
