/** One line of the report. `ours` and `peer` are in the unit that the name's explanation gives. */
export type Result = {
  readonly name: string;
  readonly ours: number;
  readonly peer: number;
  readonly ratio: number;
  /** Such as `>=0.8` or `<=3`. */
  readonly goal: string;
  readonly reached: boolean;
};

const short = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toFixed(2));

/** A result of two speeds, of which ours must be at least `least` times the peer's. */
export const speedResult = (name: string, ours: number, peer: number, least: number): Result => {
  const ratio = ours / peer;
  return { name, ours, peer, ratio, goal: `>=${least}`, reached: ratio >= least };
};

/** `name=… ours=… peer=… ratio=… goal=… reached=…` */
export const reportLine = (result: Result): string =>
  [
    `name=${result.name}`,
    `ours=${short(result.ours)}`,
    `peer=${short(result.peer)}`,
    `ratio=${result.ratio.toFixed(2)}`,
    `goal=${result.goal}`,
    `reached=${result.reached ? "yes" : "no"}`,
  ].join(" ");

/** The median; of an even number of values the mean of the middle two. */
export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2;
};
