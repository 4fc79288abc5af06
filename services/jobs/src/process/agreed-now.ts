import { ServiceError } from "@conversation-export/runtime";

const MAX_CLOCK_DIFFERENCE_MS = 60_000;

/** The earlier of the clocks of this process and ClickHouse, ms. @throws ServiceError `clock_ahead` */
export const agreedNow = async (deps: {
  readonly now: () => number;
  readonly serverTime: () => Promise<number>;
}): Promise<number> => {
  const [before, server, after] = [deps.now(), await deps.serverTime(), deps.now()];
  const difference = Math.max(server - after, before - server);
  if (difference > MAX_CLOCK_DIFFERENCE_MS) {
    const seconds = Math.round(difference / 1000);
    throw new ServiceError(
      "clock_ahead",
      `the clock of ${server > after ? "ClickHouse" : "this process"} is ${seconds} s ahead of the other, the job does nothing: set the clocks`,
    );
  }
  return Math.min(before, server);
};
