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
  if (size > 0 && size < 1) return `${written(value * 1_000, decimals)} ms`;
  if (size < MINUTE) return `${written(value, decimals)} s`;
  if (size < HOUR) return `${written(value / MINUTE, decimals)} min`;
  if (size < DAY) return `${written(value / HOUR, decimals)} h`;
  return `${written(value / DAY, decimals)} d`;
};

/** Divides by `base` until the number is short; `names` are what each division makes. */
const scaled =
  (base: number, names: readonly string[], suffix = ""): Write =>
  (value, decimals) => {
    const size = Math.abs(value);
    const power = size < base ? 0 : Math.min(names.length - 1, Math.floor(Math.log(size) / Math.log(base)));
    return `${written(value / base ** power, decimals)}${names[power] ?? ""}${suffix}`;
  };

const COUNTS = ["", " K", " Mil", " Bil"];

const UNITS: Readonly<Record<string, Write>> = {
  none: written,
  percentunit: (value, decimals) => `${written(value * 100, decimals)}%`,
  s: seconds,
  short: scaled(1_000, COUNTS),
  reqps: scaled(1_000, COUNTS, " req/s"),
  cps: scaled(1_000, COUNTS, " c/s"),
  wps: scaled(1_000, COUNTS, " wr/s"),
  bytes: scaled(1_024, [" B", " KiB", " MiB", " GiB"]),
  Bps: scaled(1_000, [" B/s", " kB/s", " MB/s", " GB/s"]),
};

/** Writes a value in a unit of Grafana. One that this renderer does not know is an error. */
export const writeValue = (value: number, unit = "none", decimals?: number): string => {
  const write = UNITS[unit];
  if (write === undefined) throw new Error(`the unit "${unit}" is unknown`);
  return write(value, decimals);
};

const TIME_STEPS = [
  0.001,
  0.002,
  0.005,
  0.01,
  0.02,
  0.05,
  0.1,
  0.2,
  0.5,
  1,
  2,
  5,
  15,
  30,
  ...[1, 2, 5, 15, 30].map((minutes) => minutes * MINUTE),
  HOUR,
  6 * HOUR,
  DAY,
  7 * DAY,
];

/** The distance between the ticks of an axis up to `most`, where round numbers would not be round in its unit. */
export const tickStep = (most: number, unit: string | undefined): number | undefined => {
  if (most <= 0) return undefined;
  if (unit === "s") return TIME_STEPS.find((step) => step * 5 >= most);
  return unit === "bytes" ? 2 ** Math.ceil(Math.log2(most / 5)) : undefined;
};
