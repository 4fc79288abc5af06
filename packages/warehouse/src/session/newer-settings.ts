import { ClickHouseError, type ClickHouseSettings } from "@clickhouse/client";

/** Left out for older servers, which behave as with the values that are sent. */
const NEWER = [
  // Since 26.4.
  "query_plan_optimize_lazy_final",
  // Since 26.5.
  "max_bytes_ratio_before_external_join",
] as const;

/** The server may be updated. */
const LEFT_OUT_MS = 60_000;

/** `now`: ms, never goes back. */
export const createNewerSettings = (now: () => number = () => performance.now()) => {
  const leftOutUntil = new Map<string, number>();
  return {
    known: (settings: ClickHouseSettings): ClickHouseSettings => {
      if (leftOutUntil.size === 0) return settings;
      const isKnown = (name: string): boolean => now() >= (leftOutUntil.get(name) ?? 0);
      return Object.fromEntries(Object.entries(settings).filter(([name]) => isKnown(name)));
    },
    /** True: send the statement again, without it. */
    isRefused: (error: unknown, sent: ClickHouseSettings): boolean => {
      if (!(error instanceof ClickHouseError) || error.type !== "UNKNOWN_SETTING") return false;
      const name = NEWER.find((one) => one in sent && error.message.includes(`'${one}'`));
      if (name === undefined) return false;
      leftOutUntil.set(name, now() + LEFT_OUT_MS);
      return true;
    },
  };
};
