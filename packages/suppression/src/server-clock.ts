const MEASURE_EVERY_MS = 10_000;
/** A slower answer says too little about the other clock. */
const MAX_ANSWER_MS = 1_000;

/** How far ClickHouse's clock is from ours. */
export type ServerClock = {
  /** Reads ClickHouse's clock; a slow answer counts only when there was none before. */
  measure(): Promise<void>;
  isMeasured(): boolean;
  /** true when the last quick answer is older than ten seconds. */
  isDue(): boolean;
  /** What ClickHouse's clock shows more than ours, ms. */
  offset(): number;
};

export const createServerClock = (deps: {
  /** ms since the epoch by ClickHouse's clock. */
  readonly serverTime: () => Promise<number>;
  /** A clock that never goes back, ms. */
  readonly now: () => number;
  /** A slower answer does not count either, ms. */
  readonly maxAnswerMs: number;
}): ServerClock => {
  const { now } = deps;
  const maxAnswerMs = Math.min(MAX_ANSWER_MS, deps.maxAnswerMs);
  let offset = 0;
  let measuredAt = Number.NEGATIVE_INFINITY;
  const isMeasured = (): boolean => measuredAt !== Number.NEGATIVE_INFINITY;
  return {
    measure: async () => {
      const askedAt = now();
      const serverTime = await deps.serverTime();
      const answeredAt = now();
      const isQuick = answeredAt - askedAt <= maxAnswerMs;
      if (!isQuick && isMeasured()) return;
      // A slow first answer gives an offset that is too small: tickets end too early, never too late.
      offset = serverTime - (isQuick ? (askedAt + answeredAt) / 2 : answeredAt);
      measuredAt = isQuick ? answeredAt : answeredAt - MEASURE_EVERY_MS;
    },
    isMeasured,
    isDue: () => now() - measuredAt > MEASURE_EVERY_MS,
    offset: () => offset,
  };
};
