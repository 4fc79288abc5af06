import { settingsOf } from "../dashboard.ts";
import { FAINT, line, text } from "../svg.ts";
import { writeValue } from "../units.ts";
import type { DrawPanel } from "./panel-area.ts";

const ROW = 30;
const SIZE = 13;
/** Width of a column with text, in columns with numbers. */
const TEXT_SHARE = 2;

/** Rows as they come; those that do not fit are counted below. */
export const drawTable: DrawPanel = (panel, { columns, rows }, { width, height }) => {
  const shares = columns.map(({ kind }) => (kind === "text" ? TEXT_SHARE : 1));
  const share = width / shares.reduce((sum, one) => sum + one, 0);
  const startOf = (at: number): number => shares.slice(0, at).reduce((sum, one) => sum + one, 0) * share;
  const cell = (at: number, y: number, content: string, more: Readonly<Record<string, string | number>>) =>
    columns[at]?.kind === "number"
      ? text(startOf(at + 1) - 8, y, SIZE, content, { ...more, "text-anchor": "end" })
      : text(startOf(at) + 8, y, SIZE, content, more);

  const room = Math.floor(height / ROW) - 1;
  const shown = rows.length > room ? rows.slice(0, room - 1) : rows;
  const baseOf = (index: number): number => (index + 1) * ROW - ROW / 2 + SIZE / 3;
  const head = columns.map(({ name }, at) => cell(at, baseOf(0), name, { "font-weight": 600, fill: FAINT }));
  const body = shown.flatMap((row, index) => [
    line(0, (index + 1) * ROW, width),
    ...row.map((value, at) => {
      const { unit, decimals } = settingsOf(panel, columns[at]?.name ?? "");
      const content = typeof value === "number" ? writeValue(value, unit, decimals) : (value ?? "");
      return cell(at, baseOf(index + 1), content, {});
    }),
  ]);
  const hidden = rows.length - shown.length;
  const rest = hidden === 0 ? [] : [cell(0, baseOf(shown.length + 1), `and ${hidden} more`, { fill: FAINT })];
  return [...head, ...body, ...rest].join("");
};
