import { median } from "./report.ts";
import { runSql } from "./warehouse-http.ts";

export type Cost = {
  readonly ms: number;
  readonly rows: number;
  readonly bytes: number;
  readonly granules: number;
};

const COUNTERS = `SELECT sumIf(value, event IN ('UserTimeMicroseconds', 'SystemTimeMicroseconds')) / 1000,
  sumIf(value, event = 'SelectedRows'), sumIf(value, event = 'SelectedBytes'),
  sumIf(value, event = 'SelectedMarks') FROM system.events`;

const counters = async (url: string): Promise<Cost> => {
  const [ms = 0, rows = 0, bytes = 0, granules = 0] = (await runSql(url, COUNTERS)).text
    .split("\t")
    .map(Number);
  return { ms, rows, bytes, granules };
};

const minus = (one: Cost, other: Cost): Cost => ({
  ms: one.ms - other.ms,
  rows: one.rows - other.rows,
  bytes: one.bytes - other.bytes,
  granules: one.granules - other.granules,
});

const CALIBRATION = 15;

/** Nothing else may use the server, merges included. */
export const createMeter = async (url: string): Promise<(work: () => Promise<unknown>) => Promise<Cost>> => {
  const between = async (work: () => Promise<unknown>): Promise<Cost> => {
    const before = await counters(url);
    await work();
    return minus(await counters(url), before);
  };
  const rounds: Cost[] = [];
  for (let round = 0; round < CALIBRATION; round += 1) rounds.push(await between(async () => {}));
  const own: Cost = {
    ms: median(rounds.map(({ ms }) => ms)),
    rows: median(rounds.map(({ rows }) => rows)),
    bytes: median(rounds.map(({ bytes }) => bytes)),
    granules: median(rounds.map(({ granules }) => granules)),
  };
  return async (work) => minus(await between(work), own);
};
