import { settingsOf } from "../dashboard.ts";
import { colorOf, text } from "../svg.ts";
import { writeValue } from "../units.ts";
import type { DrawPanel } from "./panel-area.ts";

const SIZE = 34;

/** One large number: the last value of the first number column. */
export const drawStat: DrawPanel = (panel, { columns, rows }, { width, height }) => {
  const at = columns.findIndex(({ kind }) => kind === "number");
  const value = rows.findLast((row) => row[at] !== null)?.[at];
  const { unit, decimals, thresholds } = settingsOf(panel, columns[at]?.name ?? "");
  const shown = typeof value === "number" ? writeValue(value, unit, decimals) : "No data";
  return text(width / 2, height / 2 + SIZE / 3, SIZE, shown, {
    "text-anchor": "middle",
    "font-weight": 600,
    fill: colorOf(thresholds?.steps[0]?.color ?? "blue"),
  });
};
