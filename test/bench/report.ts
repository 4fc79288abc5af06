import type { Cost, Pair } from "./pairs.ts";

export type Result = {
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  readonly peer: number;
  readonly ratio: number;
  /** Of the ratios. */
  readonly spread?: readonly [number, number];
  readonly pairs?: number;
  /** Medians by the clock. */
  readonly wall?: { readonly ours: number; readonly peer: number; readonly ratio: number };
  readonly more?: Readonly<Record<string, number>>;
};

/** Interpolates. */
const quantile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const [below = Number.NaN, above = below] = sorted.slice(Math.floor(place), Math.floor(place) + 2);
  return below + (above - below) * (place % 1);
};

export const median = (values: readonly number[]): number => quantile(values, 0.5);

const sidesOf = (pairs: readonly Pair[], by: keyof Cost) => ({
  ours: median(pairs.map(({ ours }) => ours[by])),
  peer: median(pairs.map(({ peer }) => peer[by])),
  ratios: pairs.map(({ ours, peer }) => ours[by] / peer[by]),
});

export const resultOf = (
  name: string,
  unit: string,
  pairs: readonly Pair[],
  more?: Readonly<Record<string, number>>,
): Result => {
  const { ratios, ...sides } = sidesOf(pairs, "processor");
  const { ratios: wallRatios, ...wall } = sidesOf(pairs, "wall");
  return {
    name,
    unit,
    ...sides,
    ratio: median(ratios),
    spread: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
    pairs: pairs.length,
    wall: { ...wall, ratio: median(wallRatios) },
    ...(more !== undefined && { more }),
  };
};

export const plainResult = (
  name: string,
  unit: string,
  ours: number,
  peer: number,
  more?: Readonly<Record<string, number>>,
): Result => ({ name, unit, ours, peer, ratio: ours / peer, ...(more !== undefined && { more }) });

const short = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);

export const reportLine = ({
  name,
  unit,
  ours,
  peer,
  ratio,
  spread,
  pairs,
  wall,
  more = {},
}: Result): string =>
  [
    name,
    `ours=${short(ours)}`,
    `peer=${short(peer)}`,
    `unit=${unit}`,
    `ratio=${ratio.toFixed(2)}`,
    ...(spread === undefined ? [] : [`spread=${spread.map((one) => one.toFixed(2)).join("to")}`]),
    ...(pairs === undefined ? [] : [`pairs=${pairs}`]),
    ...(wall === undefined
      ? []
      : [
          `wall_ours=${short(wall.ours)}`,
          `wall_peer=${short(wall.peer)}`,
          `wall_ratio=${wall.ratio.toFixed(2)}`,
        ]),
    ...Object.entries(more).map(([key, value]) => `${key}=${short(value)}`),
  ].join(" ");
