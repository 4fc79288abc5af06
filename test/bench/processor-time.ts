import { median } from "./report.ts";
import { serverSeconds } from "./ingest-run.ts";

/**
 * Processor time of ClickHouse for each work, in ms per call. Works take turns, so that other load affects
 * all of them; merges must be idle. The first `warm` rounds only fill caches and do not count.
 *
 * @param deps.calls calls between two readings of the clock
 */
export const processorTimes = async (
  deps: { readonly url: string; readonly rounds: number; readonly warm: number; readonly calls: number },
  works: readonly ((call: number) => Promise<unknown>)[],
): Promise<number[]> => {
  const { url, rounds, warm, calls } = deps;
  const times: number[][] = works.map(() => []);
  for (let round = 0; round < warm + rounds; round += 1) {
    for (const [index, work] of works.entries()) {
      const before = await serverSeconds(url);
      for (let call = 0; call < calls; call += 1) await work(call);
      const used = ((await serverSeconds(url)) - before) * 1_000;
      if (round >= warm) times[index]?.push(used / calls);
    }
  }
  return times.map(median);
};
