export type RateWindow = { readonly requests: number; readonly seconds: number };

const MAX_REQUESTS = 1_000_000;
const MAX_SECONDS = 86_400;
const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
const UNITS = Object.entries(UNIT_SECONDS).sort(([, one], [, other]) => other - one);
const OFF = "off";
const WINDOW = /^([1-9]\d{0,6})\/([1-9]\d{0,4})([smhd])$/;

/** `10/1s,100/1m` or `off`; undefined if malformed, out of range or a length repeats. */
export const parseRateWindows = (text: string): readonly RateWindow[] | undefined => {
  if (text.trim() === OFF) return [];
  const windows: RateWindow[] = [];
  for (const part of text.split(",")) {
    const [, requests, count, unit] = WINDOW.exec(part.trim()) ?? [];
    if (requests === undefined) return undefined;
    const window = {
      requests: Number(requests),
      seconds: Number(count) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS],
    };
    if (window.requests > MAX_REQUESTS || window.seconds > MAX_SECONDS) return undefined;
    if (windows.some(({ seconds }) => seconds === window.seconds)) return undefined;
    windows.push(window);
  }
  return windows;
};

export const formatRateWindows = (windows: readonly RateWindow[]): string =>
  windows.length === 0 ? OFF : windows.map(formatWindow).join(",");

const formatWindow = ({ requests, seconds }: RateWindow): string => {
  const [unit, length] = UNITS.find(([, size]) => seconds % size === 0) ?? ["s", 1];
  return `${requests}/${seconds / length}${unit}`;
};
