import { type Answer, seriesOf } from "../answer.ts";
import { type FieldSettings, settingsOf } from "../dashboard.ts";
import { colorOf, text } from "../svg.ts";
import { writeValue } from "../units.ts";
import type { DrawPanel, PanelArea } from "./panel-area.ts";

const SIZE = 34;
/** Width of a character in sizes of the font, at most. */
const CHARACTER = 0.68;
/** Share of the height for the course of the value, below the number. */
const COURSE_SHARE = 0.35;

const colorFor = ({ thresholds }: FieldSettings, value: number): string => {
  const reached = thresholds?.steps.findLast((step) => step.value === null || value >= step.value);
  return colorOf(reached?.color ?? "blue");
};

const drawCourse = (answer: Answer, color: string, { width, height, range }: PanelArea): string => {
  const numbers = (seriesOf(answer)[0]?.points ?? []).flatMap(([time, value]) =>
    value === null ? [] : [[time, value] as const],
  );
  const most = Math.max(...numbers.map(([, value]) => value)) || 1;
  const points = numbers.map(([time, value]) => {
    const x = (width * (time - range.from)) / (range.to - range.from);
    return `${x.toFixed(1)},${(height - (height * COURSE_SHARE * value) / most).toFixed(1)}`;
  });
  const [first = "0", last = "0"] = [points[0], points.at(-1)].map((point) => point?.split(",")[0] ?? "0");
  return [
    `<polygon points="${first},${height} ${points.join(" ")} ${last},${height}" fill="${color}" opacity="0.12"/>`,
    `<polyline points="${points.join(" ")}" fill="none" stroke="${color}"/>`,
  ].join("");
};

/** One large number: the last value of the first number column, where the panel says so above its course. */
export const drawStat: DrawPanel = (panel, answer, area) => {
  const { columns, rows } = answer;
  const at = columns.findIndex(({ kind }) => kind === "number");
  const settings = settingsOf(panel, columns[at]?.name ?? "");
  const value = rows.findLast((row) => row[at] !== null)?.[at];
  const isNumber = typeof value === "number";
  const color = colorFor(settings, isNumber ? value : 0);
  const hasCourse = panel.options?.graphMode === "area" && isNumber;
  const middle = (area.height * (hasCourse ? 1 - COURSE_SHARE : 1)) / 2;
  const shown = isNumber ? writeValue(value, settings.unit, settings.decimals) : "No data";
  const size = Math.min(SIZE, Math.floor(area.width / (shown.length * CHARACTER)));
  return [
    ...(hasCourse ? [drawCourse(answer, color, area)] : []),
    text(area.width / 2, middle + size / 3, size, shown, {
      "text-anchor": "middle",
      "font-weight": 600,
      fill: color,
    }),
  ].join("");
};
