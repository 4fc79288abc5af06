export const FONT = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";
export const INK = "#24292e";
export const FAINT = "#6e7680";
export const LINE = "#e4e7eb";

const PALETTE = ["#3274d9", "#37872d", "#e0752d", "#8f3bb8", "#e0b400", "#c4162a", "#1a9ba8", "#7c4a2d"];

export const seriesColor = (index: number): string => PALETTE[index % PALETTE.length] ?? INK;

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

export const text = (
  x: number,
  y: number,
  size: number,
  content: string,
  more: Readonly<Record<string, string | number>> = {},
): string => {
  const attributes = Object.entries({ x, y, "font-size": size, fill: INK, ...more });
  return `<text ${attributes.map(([name, value]) => `${name}="${value}"`).join(" ")}>${escape(content)}</text>`;
};

export const line = (x1: number, y: number, x2: number): string =>
  `<line x1="${x1}" y1="${y}" x2="${x2}" y2="${y}" stroke="${LINE}"/>`;

export const rect = (x: number, y: number, width: number, height: number, more: string): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" ${more}/>`;
