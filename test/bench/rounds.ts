import { median } from "./report.ts";

/** Milliseconds that the work took. */
export const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const started = performance.now();
  await work();
  return performance.now() - started;
};

/**
 * Runs the works one after the other, round by round, so that noise meets all of them; medians in ms. Of the
 * rounds the first `warm` do not count: they fill caches and connections.
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
