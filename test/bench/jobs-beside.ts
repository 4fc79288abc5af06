import type { System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";

/** Starts jobs without its schedules, as pages are read beside it, and waits until it has noted dates for them. */
export const jobsBeside = async (system: System): Promise<void> => {
  const names = ["WINDOWS", "COMPACT", "ERASURE", "RETENTION", "RECONCILE"];
  const off = Object.fromEntries(names.map((name) => [`${name}_INTERVAL_SECONDS`, "0"]));
  await system.service("jobs", { LOG_LEVEL: "warn", ...off });
  await until("dates are noted", 300_000, async () => {
    const noted = "SELECT count() FROM watermarks WHERE list = 'changes with dates noted'";
    return Number(await runSql(system.stack.clickhouse.url("jobs"), noted)) > 0;
  });
};
