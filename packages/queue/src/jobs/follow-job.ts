import { setTimeout as sleep } from "node:timers/promises";
import { isRetryable, ServiceError } from "@conversation-export/runtime";
import type { JobName } from "../contract/job.ts";
import { hasEnded, type JobView } from "./job-view.ts";

const FOLLOW_EVERY_MS = 500;
const FOLLOW_WITHOUT_REDIS_MS = 60_000;

export type FollowOptions = {
  readonly everyMs?: number;
  readonly signal?: AbortSignal;
  /** Until when Redis is waited for; null: it is back. */
  readonly onRedis?: (awayUntil: Date | null) => void;
};

/** Yields each change until the job has ended, outlives a minute without Redis, throws `job_unknown`. */
export async function* followJob(
  deps: {
    readonly get: (name: JobName, id: string) => Promise<JobView | null>;
    readonly isConnected: () => boolean;
  },
  name: JobName,
  id: string,
  options: FollowOptions = {},
): AsyncGenerator<JobView> {
  const { everyMs = FOLLOW_EVERY_MS, signal, onRedis = () => undefined } = options;
  let reported = "";
  let away = false;
  let lastSeen = performance.now();
  const lose = (): void => {
    if (!away) onRedis(new Date(Date.now() + FOLLOW_WITHOUT_REDIS_MS - (performance.now() - lastSeen)));
    away = true;
  };
  while (signal?.aborted !== true) {
    try {
      // `get` waits for the connection, so a loss is reported before.
      if (reported !== "" && !deps.isConnected()) lose();
      const view = await deps.get(name, id);
      if (away) onRedis(null);
      away = false;
      if (view === null) throw new ServiceError("job_unknown", `there is no job ${id} in ${name}`);
      lastSeen = performance.now();
      const now = JSON.stringify(view);
      if (now !== reported) yield view;
      reported = now;
      if (hasEnded(view)) return;
    } catch (error) {
      if (!isRetryable(error) || performance.now() - lastSeen > FOLLOW_WITHOUT_REDIS_MS) throw error;
      lose();
    }
    await sleep(everyMs, undefined, signal && { signal }).catch(() => undefined);
  }
}
