import { ClickHouseError } from "@clickhouse/client";
import { describe, expect, it } from "vitest";
import { createNewerSettings } from "./newer-settings.ts";

const SENT = {
  max_threads: 1,
  query_plan_optimize_lazy_final: 0,
  max_bytes_ratio_before_external_join: 0,
} as const;
const unknown = (name: string): ClickHouseError =>
  new ClickHouseError({
    code: "115",
    type: "UNKNOWN_SETTING",
    message: `Unknown setting '${name}': Maybe …`,
  });

describe("newer settings", () => {
  it("are sent until the server refuses one of them", () => {
    const settings = createNewerSettings(() => 0);
    expect(settings.known(SENT)).toEqual(SENT);
    expect(settings.isRefused(unknown("max_bytes_ratio_before_external_join"), SENT)).toBe(true);
    expect(settings.known(SENT)).toEqual({ max_threads: 1, query_plan_optimize_lazy_final: 0 });
  });

  it("are sent again after a minute, since the server may have been updated", () => {
    let now = 0;
    const settings = createNewerSettings(() => now);
    settings.isRefused(unknown("query_plan_optimize_lazy_final"), SENT);
    now = 59_999;
    expect(settings.known(SENT)).not.toHaveProperty("query_plan_optimize_lazy_final");
    now = 60_000;
    expect(settings.known(SENT)).toEqual(SENT);
  });

  it("let two statements that were refused together both be sent again", () => {
    const settings = createNewerSettings(() => 0);
    const refused = unknown("query_plan_optimize_lazy_final");
    expect([settings.isRefused(refused, SENT), settings.isRefused(refused, SENT)]).toEqual([true, true]);
  });

  it("leave every other error as it is", () => {
    const settings = createNewerSettings(() => 0);
    const others = [
      unknown("max_threads"),
      new Error("Unknown setting 'query_plan_optimize_lazy_final'"),
      new ClickHouseError({ code: "60", type: "UNKNOWN_TABLE", message: "'query_plan_optimize_lazy_final'" }),
    ];
    for (const error of others) expect(settings.isRefused(error, SENT)).toBe(false);
    expect(settings.isRefused(unknown("query_plan_optimize_lazy_final"), { max_threads: 1 })).toBe(false);
    expect(settings.known(SENT)).toEqual(SENT);
  });
});
