import { visibleLines } from "./visible-lines.ts";

export type Print = (text: string) => void;

export const renderTable = (
  heading: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string => renderColumns([heading, ...rows]);

/** A line end would look like a row. */
const cellOf = (value: string | number): string =>
  visibleLines(String(value)).replaceAll("\n", "\\n").replaceAll("\t", "\\t");

export const renderColumns = (rows: readonly (readonly (string | number)[])[]): string => {
  const lines = rows.map((row) => row.map(cellOf));
  const columns = Math.max(0, ...lines.map((line) => line.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
};

export const renderJson = (value: unknown): string => JSON.stringify(value, null, 2);
