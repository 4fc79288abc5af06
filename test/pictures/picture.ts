import type { Answer } from "./answer.ts";
import type { Dashboard, Panel } from "./dashboard.ts";
import type { TimeRange } from "./fill-sql.ts";
import { drawBarChart } from "./panels/bar-chart.ts";
import type { DrawPanel } from "./panels/panel-area.ts";
import { drawStat } from "./panels/stat.ts";
import { drawTable } from "./panels/table.ts";
import { drawTimeSeries } from "./panels/time-series.ts";
import { FAINT, FONT, LINE, rect, text } from "./svg.ts";

/** Pixels of one column and one row of the grid, with the gap behind them. */
const CELL = { width: 50, height: 38, gap: 8 } as const;
const COLUMNS = 24;
const MARGIN = 16;
const HEAD = 52;
const TITLE = 34;
const TITLE_SIZE = 14;

const PANELS: Readonly<Record<string, DrawPanel>> = {
  stat: drawStat,
  timeseries: drawTimeSeries,
  barchart: drawBarChart,
  table: drawTable,
};

/** Narrows a title that may not fit: how wide it is depends on the fonts of the reader. */
const drawTitle = (title: string, room: number): string =>
  text(12, 22, TITLE_SIZE, title, {
    "font-weight": 600,
    ...(title.length * TITLE_SIZE * 0.6 > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {}),
  });

const drawPanel = (panel: Panel, answer: Answer | undefined, range: TimeRange): string => {
  const { type, title, gridPos } = panel;
  const width = gridPos.w * CELL.width - CELL.gap;
  const height = gridPos.h * CELL.height - CELL.gap;
  if (type === "row") return text(2, height - 8, 16, title, { "font-weight": 600 });
  const draw = PANELS[type];
  if (draw === undefined) throw new Error(`panel "${title}": the type "${type}" cannot be drawn`);
  if (answer === undefined) throw new Error(`panel "${title}": nothing was asked`);
  const area = { width: width - 16, height: height - TITLE - 8, range };
  const content =
    answer.rows.length === 0
      ? text(area.width / 2, area.height / 2, 14, "No data", { "text-anchor": "middle", fill: FAINT })
      : draw(panel, answer, area);
  return [
    rect(0, 0, width, height, `rx="3" fill="#ffffff" stroke="${LINE}"`),
    drawTitle(title, width - 24),
    `<g transform="translate(8 ${TITLE})">${content}</g>`,
  ].join("");
};

/** Days, or instants where all of it lies within a day. */
const describeRange = ({ from, to }: TimeRange): string => {
  const shown = to - from < 86_400_000 ? 16 : 10;
  const write = (ms: number): string => new Date(ms).toISOString().slice(0, shown).replace("T", " ");
  return `${write(from)} to ${write(to)}, UTC`;
};

/** Draws a dashboard as one SVG, each panel at its place. `answers` are by the id of the panel. */
export const drawDashboard = (
  { title, panels }: Pick<Dashboard, "title" | "panels">,
  answers: ReadonlyMap<number, Answer>,
  range: TimeRange,
): string => {
  const rows = Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  const width = 2 * MARGIN + COLUMNS * CELL.width - CELL.gap;
  const height = HEAD + rows * CELL.height - CELL.gap + MARGIN;
  const drawn = panels.map((panel) => {
    const x = MARGIN + panel.gridPos.x * CELL.width;
    const y = HEAD + panel.gridPos.y * CELL.height;
    return `<g transform="translate(${x} ${y})">${drawPanel(panel, answers.get(panel.id), range)}</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT}">`,
    rect(0, 0, width, height, `fill="#f4f5f7"`),
    text(MARGIN + 2, 33, 20, title, { "font-weight": 600 }),
    text(width - MARGIN, 33, 14, describeRange(range), {
      "text-anchor": "end",
      fill: FAINT,
    }),
    ...drawn,
    "</svg>",
    "",
  ].join("\n");
};
