import { endedChildrenMs, processorMs } from "./processor-time.ts";

/** What a work takes: processor time and time of the clock, in the unit of its result. */
export type Cost = { readonly processor: number; readonly wall: number };
/** The same work by the service and by its peer, one directly after the other. */
export type Pair = { readonly ours: Cost; readonly peer: Cost };
type Measure = () => Promise<Cost>;

/**
 * Measures a work in ms for one of `units`: the processor time of the processes `pids`, and of children that
 * end meanwhile.
 *
 * @param deps.calls calls in a row; together they should take some 300 ms, since the kernel counts in steps of 10
 */
export const costOf =
  (
    deps: { readonly pids: readonly number[]; readonly calls?: number; readonly units?: number },
    work: (call: number) => Promise<unknown>,
  ): Measure =>
  async () => {
    const { pids, calls = 1, units = 1 } = deps;
    const started = performance.now();
    const before = processorMs(pids) + endedChildrenMs();
    for (let call = 0; call < calls; call += 1) await work(call);
    const processor = processorMs(pids) + endedChildrenMs() - before;
    const wall = performance.now() - started;
    return { processor: processor / calls / units, wall: wall / calls / units };
  };

/** Measures both in turn, so that other load and the host meet both. The first `warm` pairs do not count. */
export const inPairs = async (
  ours: Measure,
  peer: Measure,
  { pairs = 9, warm = 2 }: { readonly pairs?: number; readonly warm?: number } = {},
): Promise<Pair[]> => {
  const measured: Pair[] = [];
  for (let round = 0; round < warm + pairs; round += 1) {
    const pair = { ours: await ours(), peer: await peer() };
    if (round >= warm) measured.push(pair);
  }
  return measured;
};
