const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Three significant digits where the panel asks for no number of decimals. */
const written = (value: number, decimals: number | undefined): string => {
  if (decimals !== undefined) return value.toFixed(decimals);
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  return String(Number(value.toFixed(Math.max(0, 2 - magnitude))));
};

type Write = (value: number, decimals: number | undefined) => string;

const seconds: Write = (value, decimals) => {
  const size = Math.abs(value);
  if (size < MINUTE) return `${written(value, decimals)} s`;
  if (size < HOUR) return `${written(value / MINUTE, decimals)} min`;
  if (size < DAY) return `${written(value / HOUR, decimals)} h`;
  return `${written(value / DAY, decimals)} d`;
};

const UNITS: Readonly<Record<string, Write>> = {
  none: written,
  percentunit: (value, decimals) => `${written(value * 100, decimals)}%`,
  s: seconds,
};

/** Writes a value in a unit of Grafana. One that this renderer does not know is an error. */
export const writeValue = (value: number, unit = "none", decimals?: number): string => {
  const write = UNITS[unit];
  if (write === undefined) throw new Error(`the unit "${unit}" is unknown`);
  return write(value, decimals);
};

const TIME_STEPS = [
  1,
  5,
  15,
  30,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  6 * HOUR,
  DAY,
];

/** The distance between the ticks of an axis up to `most`, where round numbers would not be round in its unit. */
export const tickStep = (most: number, unit: string | undefined): number | undefined =>
  unit === "s" ? TIME_STEPS.find((step) => step * 5 >= most) : undefined;
