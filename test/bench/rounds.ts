import { median } from "./report.ts";

/** Runs the work and returns its milliseconds. */
export const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const started = performance.now();
  await work();
  return performance.now() - started;
};

/**
 * Runs each work once a round, so that noise affects all of them, and returns medians in ms. The first `warm`
 * rounds only fill caches and connections and do not count.
 */
export const interleaved = async (
  works: readonly (() => Promise<unknown>)[],
  { rounds, warm }: { readonly rounds: number; readonly warm: number },
): Promise<number[]> => {
  const times: number[][] = works.map(() => []);
  for (let round = 0; round < warm + rounds; round += 1) {
    for (const [index, work] of works.entries()) {
      const ms = await timed(work);
      if (round >= warm) times[index]?.push(ms);
    }
  }
  return times.map(median);
};
