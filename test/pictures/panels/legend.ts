import type { Series } from "../answer.ts";
import { type Panel, settingsOf } from "../dashboard.ts";
import { FAINT, rect, seriesColor, text } from "../svg.ts";
import { writeValue } from "../units.ts";

const ROW = 18;
const SIZE = 12;

const numbersOf = ({ points }: Series): number[] =>
  points.flatMap(([, value]) => (value === null ? [] : [value]));

const CALCS: Readonly<Record<string, { readonly title: string; of(numbers: number[]): number }>> = {
  mean: {
    title: "Mean",
    of: (numbers) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length,
  },
  lastNotNull: { title: "Last", of: (numbers) => numbers.at(-1) ?? 0 },
  max: { title: "Max", of: (numbers) => Math.max(...numbers) },
};

const calcOf = (name: string) => {
  const calc = CALCS[name];
  if (calc === undefined) throw new Error(`the calculation "${name}" of a legend is unknown`);
  return calc;
};

/** Cuts a name that has no room, as far as that can be known without the fonts of the reader. */
const cut = (name: string, room: number): string => {
  const most = Math.max(4, Math.floor(room / (SIZE * 0.56)));
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
};

/**
 * The table of series below a chart: colour, name and calculated values. No higher than `room`: what does not fit
 * is counted.
 */
export const drawLegend = (
  panel: Panel,
  series: readonly Series[],
  width: number,
  room: number,
): { readonly svg: string; readonly height: number } => {
  const { showLegend = false, calcs = [] } = panel.options?.legend ?? {};
  if (!showLegend) return { svg: "", height: 0 };
  const baseOf = (index: number): number => (index + 1) * ROW - 5;
  const endOf = (at: number): number => width - (calcs.length - 1 - at) * 80 - 8;
  const right = { "text-anchor": "end" };
  const head = calcs.map((name, at) =>
    text(endOf(at), baseOf(0), SIZE, calcOf(name).title, { ...right, fill: FAINT, "font-weight": 600 }),
  );
  const most = Math.max(2, Math.floor(room / ROW) - 1);
  const shown = series.length > most ? series.slice(0, most - 1) : series;
  const hidden = series.length - shown.length;
  const rest =
    hidden === 0 ? [] : [text(30, baseOf(shown.length + 1), SIZE, `and ${hidden} more`, { fill: FAINT })];
  const rows = shown.flatMap((one, index) => {
    const { unit, decimals } = settingsOf(panel, one.field);
    const numbers = numbersOf(one);
    return [
      rect(8, baseOf(index + 1) - 6, 14, 4, `rx="2" fill="${seriesColor(index)}"`),
      text(30, baseOf(index + 1), SIZE, cut(one.name, width - 38 - calcs.length * 80)),
      ...calcs.map((name, at) => {
        const value = numbers.length === 0 ? "" : writeValue(calcOf(name).of(numbers), unit, decimals);
        return text(endOf(at), baseOf(index + 1), SIZE, value, right);
      }),
    ];
  });
  return { svg: [...head, ...rows, ...rest].join(""), height: (shown.length + rest.length + 1) * ROW };
};
