import type { JobProgress } from "../contract/job.ts";

const WRITE_EVERY_MS = 500;

/** Progress is for operators only, so errors are ignored. */
export const createProgressWriter = (
  write: (progress: JobProgress) => Promise<unknown>,
  now: () => number = () => performance.now(),
) => {
  let last = Number.NEGATIVE_INFINITY;
  let pending: JobProgress | undefined;

  const flush = async (): Promise<void> => {
    if (pending === undefined) return;
    const progress = pending;
    pending = undefined;
    last = now();
    await write(progress).catch(() => undefined);
  };

  return {
    /** At most twice a second. */
    report: async (progress: JobProgress): Promise<void> => {
      pending = progress;
      if (now() - last >= WRITE_EVERY_MS) await flush();
    },
    flush,
  };
};

export const sumProgress = (parts: readonly JobProgress[], planned: number): JobProgress | null => {
  const [first] = parts;
  if (first === undefined) return null;
  const allKnown = parts.length === planned && parts.every(({ total }) => total !== null);
  return {
    done: parts.reduce((sum, { done }) => sum + done, 0),
    total: allKnown ? parts.reduce((sum, { total }) => sum + (total ?? 0), 0) : null,
    unit: first.unit,
  };
};
