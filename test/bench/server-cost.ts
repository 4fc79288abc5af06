import { median } from "./report.ts";
import { runSql } from "./warehouse-http.ts";

/** What ClickHouse spent and read. */
export type Cost = { readonly ms: number; readonly rows: number; readonly bytes: number };

const COUNTERS = `SELECT sumIf(value, event IN ('UserTimeMicroseconds', 'SystemTimeMicroseconds')) / 1000,
  sumIf(value, event = 'SelectedRows'), sumIf(value, event = 'SelectedBytes') FROM system.events`;

const counters = async (url: string): Promise<Cost> => {
  const [ms = 0, rows = 0, bytes = 0] = (await runSql(url, COUNTERS)).text.split("\t").map(Number);
  return { ms, rows, bytes };
};

const CALIBRATION = 15;

/**
 * Measures the processor time of ClickHouse for one work after the other; nothing else may use the server,
 * merges included. The cost of reading the counters is taken off.
 */
export const createMeter = async (url: string): Promise<(work: () => Promise<unknown>) => Promise<Cost>> => {
  const between = async (work: () => Promise<unknown>): Promise<Cost> => {
    const before = await counters(url);
    await work();
    const after = await counters(url);
    return { ms: after.ms - before.ms, rows: after.rows - before.rows, bytes: after.bytes - before.bytes };
  };
  const own: Cost[] = [];
  for (let round = 0; round < CALIBRATION; round += 1) own.push(await between(async () => {}));
  const ownMs = median(own.map(({ ms }) => ms));
  const ownRows = median(own.map(({ rows }) => rows));
  const ownBytes = median(own.map(({ bytes }) => bytes));
  return async (work) => {
    const { ms, rows, bytes } = await between(work);
    return { ms: ms - ownMs, rows: rows - ownRows, bytes: bytes - ownBytes };
  };
};
