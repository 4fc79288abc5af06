import { endedChildrenMs, type Processes, processorMs } from "./processor-time.ts";

/** What a work takes: processor time and time of the clock, in the unit of its result. */
export type Cost = { readonly processor: number; readonly wall: number };
/** The same work by the service and by its peer, one directly after the other. */
export type Pair = { readonly ours: Cost; readonly peer: Cost };
/** At most so many pairs; fewer give a first look. */
export const MOST_PAIRS = Number(process.env["PAIRS"] ?? 9);
type Measure = () => Promise<Cost>;

/**
 * Measures a work in ms for one of `units`: the processor time that `processes` take in addition to what they take
 * idle, and that of children that end meanwhile.
 *
 * @param deps.calls calls in a row; together they should take some 300 ms, since the kernel counts in steps of 10
 */
export const costOf =
  (
    deps: { readonly processes: Processes; readonly calls?: number; readonly units?: number },
    work: (call: number) => Promise<unknown>,
  ): Measure =>
  async () => {
    const { processes, calls = 1, units = 1 } = deps;
    const { pids, idle } = processes;
    const started = performance.now();
    const before = processorMs(pids) + endedChildrenMs();
    for (let call = 0; call < calls; call += 1) await work(call);
    const spent = processorMs(pids) + endedChildrenMs() - before;
    const wall = performance.now() - started;
    const processor = spent - idle * wall;
    return { processor: processor / calls / units, wall: wall / calls / units };
  };

/** Measures both in turn, so that other load and the host meet both. The first `warm` pairs do not count. */
export const inPairs = async (
  ours: Measure,
  peer: Measure,
  { pairs = 9, warm = 2 }: { readonly pairs?: number; readonly warm?: number } = {},
): Promise<Pair[]> => {
  const measured: Pair[] = [];
  for (let round = 0; round < warm + Math.min(pairs, MOST_PAIRS); round += 1) {
    const pair = { ours: await ours(), peer: await peer() };
    if (round >= warm) measured.push(pair);
  }
  return measured;
};
