import { JOB_NAMES } from "@conversation-export/queue";
import { expect, it } from "vitest";
import { readConfig } from "../config.ts";
import { schedulesOf } from "./schedules.ts";

const env = {
  REDIS_URL: "redis://localhost",
  CLICKHOUSE_URL: "http://localhost",
  KAFKA_BROKERS: "localhost:9092",
  SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
};
const BY_HAND = ["backfill", "replay"];

it("has a line for every job that is not only started by hand, each with an interval that can be switched off", () => {
  const lines = schedulesOf(readConfig(env));
  expect(lines.map(({ name }) => name).sort()).toEqual(
    JOB_NAMES.filter((name) => !BY_HAND.includes(name)).sort(),
  );
  const off = Object.fromEntries(lines.map(({ name }) => [`${name.toUpperCase()}_INTERVAL_SECONDS`, "0"]));
  expect(schedulesOf(readConfig({ ...env, ...off })).map(({ everyMs }) => everyMs)).toEqual(
    lines.map(() => null),
  );
});
