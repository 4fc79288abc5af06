import { endedChildrenMs, type Processes, processorMs } from "./processor-time.ts";

export type Cost = { readonly processor: number; readonly wall: number };
/** One directly after the other. */
export type Pair = { readonly ours: Cost; readonly peer: Cost };
export const MOST_PAIRS = Number(process.env["PAIRS"] ?? 9);
type Measure = () => Promise<Cost>;

/** ms above idle; calls should take some 300, since the kernel counts in steps of 10. */
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

/** Alternates, so that other load meets both. */
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
