import { NO_SCHEDULES } from "../system/no-schedules.ts";
import type { System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";

/**
 * Starts jobs without its schedules, as pages are read beside it, and waits until it has noted dates for
 * them.
 */
export const jobsBeside = async (system: System): Promise<void> => {
  await system.service("jobs", { LOG_LEVEL: "warn", ...NO_SCHEDULES });
  await until("dates are noted", 300_000, async () => {
    const noted = "SELECT count() FROM watermarks WHERE list = 'changes with dates noted'";
    return Number(await runSql(system.stack.clickhouse.url("jobs"), noted)) > 0;
  });
};
