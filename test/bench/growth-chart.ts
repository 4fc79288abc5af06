import { FAINT, FONT, line, rect, seriesColor, text } from "./svg.ts";
import type { GrowthLine } from "./growth-reads.ts";

const PANEL = { width: 330, height: 300 } as const;
const MARGIN = 16;
const HEAD = 70;
const AXIS = 56;
const LEGEND_LINE = 20;
const HIGHEST = 9;

const yOf = (ms: number): number => PANEL.height - (Math.log2(Math.max(ms, 1)) / HIGHEST) * PANEL.height;

const short = (size: number): string =>
  size >= 1_000_000
    ? `${Number((size / 1_000_000).toPrecision(2))} million`
    : size >= 10_000
      ? `${Math.round(size / 1_000)},000`
      : String(size);

const drawPanel = (by: string, sizes: readonly string[], lines: readonly GrowthLine[]): string => {
  const room = PANEL.width - AXIS;
  const xOf = (index: number): number => AXIS + 24 + (index * (room - 70)) / (sizes.length - 1);
  const grid = Array.from({ length: HIGHEST + 1 }, (_, power) => 2 ** power).map(
    (ms) =>
      line(AXIS, yOf(ms), PANEL.width) +
      text(AXIS - 8, yOf(ms) + 4, 12, `${ms} ms`, { "text-anchor": "end", fill: FAINT }),
  );
  const drawn = lines.map(({ ms }, index) => {
    const points = ms.map((value, place) => `${xOf(place).toFixed(1)},${yOf(value).toFixed(1)}`);
    const color = seriesColor(index);
    const dots = ms.map(
      (value, place) =>
        `<circle cx="${xOf(place).toFixed(1)}" cy="${yOf(value).toFixed(1)}" r="3" fill="${color}"/>`,
    );
    return `<polyline points="${points.join(" ")}" fill="none" stroke="${color}" stroke-width="2"/>${dots.join("")}`;
  });
  const labels = sizes.map((size, index) =>
    text(xOf(index), PANEL.height + 20, 12, size, { "text-anchor": "middle", fill: FAINT }),
  );
  return [text(AXIS, -12, 14, by, { "font-weight": 600 }), ...grid, ...drawn, ...labels].join("");
};

export const drawGrowth = (lines: readonly GrowthLine[]): string => {
  const reads = [...new Set(lines.map(({ read }) => read))];
  const dimensions = [...new Set(lines.map(({ by }) => by))];
  const width = 2 * MARGIN + dimensions.length * (PANEL.width + MARGIN);
  const legendTop = HEAD + PANEL.height + 52;
  const height = legendTop + Math.ceil(reads.length / 3) * LEGEND_LINE + MARGIN;
  const panels = dimensions.map((by, index) => {
    // Keeps a read's colour the same in every panel.
    const ofIt = reads.map(
      (read) => lines.find((one) => one.by === by && one.read === read) ?? { read, by, sizes: [], ms: [] },
    );
    const sizes = lines.find((one) => one.by === by)?.sizes ?? [];
    // Three kinds of records.
    const labels = sizes.map((size) => short(by === "records" ? 3 * size : size));
    const title = by === "parts" ? "parts in a partition" : `${by} in the tables`;
    return `<g transform="translate(${MARGIN + index * (PANEL.width + MARGIN)} ${HEAD})">${drawPanel(title, labels, ofIt)}</g>`;
  });
  const legend = reads.map((read, index) => {
    const x = MARGIN + 60 + (index % 3) * (PANEL.width + MARGIN);
    const y = legendTop + Math.floor(index / 3) * LEGEND_LINE;
    return rect(x, y - 10, 12, 12, `fill="${seriesColor(index)}"`) + text(x + 18, y, 13, read);
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT}">`,
    rect(0, 0, width, height, `fill="#ffffff"`),
    text(MARGIN, 30, 18, "Processor time of ClickHouse as the tables grow", { "font-weight": 600 }),
    ...panels,
    ...legend,
    "</svg>",
    "",
  ].join("\n");
};
