export const count = (value: number): string => Math.round(value).toLocaleString("en");

export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

export const table = (rows: readonly (readonly (string | number)[])[]): string => {
  const texts = rows.map((row) => row.map((cell) => (typeof cell === "number" ? count(cell) : cell)));
  const widths = (texts[0] ?? []).map((_, column) =>
    Math.max(...texts.map((row) => row[column]?.length ?? 0)),
  );
  return texts
    .map((row, at) =>
      row
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return typeof rows[at]?.[column] === "number" ? cell.padStart(width) : cell.padEnd(width);
        })
        .join("  ")
        .trimEnd(),
    )
    .map((line) => `  ${line}`)
    .join("\n");
};
