/** Loaded with `--import`: on SIGUSR2 the clocks of the process leap 61 seconds ahead. */
const LEAP_MS = 61_000;

const RealDate = Date;
let ahead = 0;
process.on("SIGUSR2", () => {
  ahead += LEAP_MS;
});

const realNow = performance.now.bind(performance);
performance.now = () => realNow() + ahead;

globalThis.Date = class extends RealDate {
  constructor(...parts: unknown[]) {
    if (parts.length === 0) super(RealDate.now() + ahead);
    else super(...(parts as [number]));
  }
  static override now(): number {
    return RealDate.now() + ahead;
  }
} as DateConstructor;
