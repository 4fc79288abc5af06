import { fileURLToPath } from "node:url";
import {
  backfillJob,
  compactJob,
  erasureJob,
  type JobName,
  reconcileJob,
  replayJob,
  retentionJob,
  windowsJob,
} from "@conversation-export/queue";
import { afterAll, beforeAll, expect, it } from "vitest";
import { redisCommand } from "../integration/queue-redis.ts";
import { differencesOf, type EndState, readTables } from "../support/faults/end-state.ts";
import { CLIENT, cloneDatabase, fillWithWork, GROUP } from "../support/faults/fault-data.ts";
import { type Lane, openLane, type Work, work } from "../support/faults/lane.ts";
import { type CatchPoint, SIDES } from "../support/faults/statement-gate.ts";
import { closeAllWindows } from "../support/run/compaction-load.ts";
import { bySize, seedOfRun } from "../support/run/size.ts";
import { startSystem, type System } from "../support/run/system.ts";
import { runSql } from "../support/run/warehouse-sql.ts";
import { createRandom } from "../support/sample/random.ts";

const PLANT = fileURLToPath(new URL("../support/bugs/plant.ts", import.meta.url));
const SIZES = bySize(
  { conversations: 30, letters: 9, persons: 2, expired: 20, moved: 2, windows: 24 },
  { conversations: 3_000, letters: 600, persons: 30, expired: 5_000, moved: 200, windows: 700 },
);
/** How often each disturbance is tried, at other points of the jobs. */
const ROUNDS = bySize(1, 6);
const TIMEOUT_MS = bySize(300_000, 1_800_000);
const startedAt = Date.now();

/** Jobs of one lane leave each other's rows and tables alone, or only read. */
const LANES: Readonly<Record<string, { readonly works: () => readonly Work[]; readonly physical: boolean }>> =
  {
    writing: {
      physical: false,
      works: () => [
        work(backfillJob, {
          clientId: CLIENT.backfill,
          source: { kind: "landing" },
          window: null,
          dryRun: false,
          maxLag: null,
          rowsPerSecond: null,
        }),
        work(replayJob, {
          topic: null,
          reasons: ["time_in_future"],
          from: null,
          to: null,
          place: null,
          again: false,
          maxReplays: 3,
          dryRun: false,
        }),
        work(reconcileJob, {
          from: new Date(startedAt).toISOString(),
          to: new Date(startedAt + 1).toISOString(),
          clientId: CLIENT.reconcile,
        }),
        work(windowsJob, { since: null }),
      ],
    },
    deleting: {
      physical: true,
      works: () => [
        work(erasureJob, { clientId: null, requestId: null }),
        work(retentionJob, { clientId: null, dryRun: false }),
      ],
    },
    merging: {
      physical: true,
      works: () => [work(compactJob, { range: null, force: false, dryRun: false })],
    },
  };

/** A facet of the end state that nothing but this job changes. */
const DONE_BY: Readonly<Record<JobName, string>> = {
  backfill: `conversations of ${CLIENT.backfill}`,
  replay: `messages of ${CLIENT.replay}`,
  reconcile: "outcome of reconcile",
  windows: "upload_windows of ",
  erasure: `conversations of ${CLIENT.erasure}`,
  retention: `messages of ${CLIENT.retention}`,
  compact: "parts",
};

let system: System;
let seed: string;
let scenarios = 0;
const open: Lane[] = [];
let before: EndState;
let undisturbed: ReadonlyMap<string, EndState>;
/** What is left of the keys of jobs by lane; those of a run that dies stay for an hour. */
const keys = new Map<string, string>();
/** Statements of each job when nothing disturbs it. */
const statements = new Map<JobName, number>();

beforeAll(async () => {
  seed = seedOfRun("job faults");
  system = await startSystem("job-faults");
  await fillWithWork(system, { seed, sizes: SIZES, plant: PLANT });
  before = await readTables(system.stack.clickhouse.url("migrator"), true);
  const lanes = await openLanes();
  await Promise.all([...lanes.values()].map((lane) => lane.start()));
  undisturbed = await endStates(lanes);
  for (const [name, { jobs, gate, databaseUrl }] of lanes) {
    for (const job of jobs) statements.set(job, gate.seen().get(job) ?? 0);
    keys.set(name, await runSql(databaseUrl, "SELECT DISTINCT run_id, kind FROM job_keys FORMAT TSV"));
  }
}, TIMEOUT_MS);
afterAll(async () => {
  await Promise.all(open.map((lane) => lane.close()));
  await system?.stop();
});

/** Opens all lanes on fresh copies of the data. */
const openLanes = async (): Promise<Map<string, Lane>> => {
  await Promise.all(open.splice(0).map((lane) => lane.close()));
  await redisCommand(system.stack.redis.url, "FLUSHALL");
  scenarios += 1;
  const lanes = await Promise.all(
    Object.entries(LANES).map(async ([name, { works, physical }], index) => {
      const database = `conversation_export_${scenarios}_${name}`;
      await cloneDatabase(system, database);
      if (name === "merging") await closeAllWindows(system.stack.clickhouse.url("jobs", database));
      const lane = await openLane({
        system,
        database,
        index,
        works: works(),
        withIngest: name === "writing",
        // An erasure waits for as long as a lease lasts.
        leaseMs: name === "deleting" ? 1_000 : 2_000,
        physical,
        group: GROUP,
      });
      open.push(lane);
      return [name, lane] as const;
    }),
  );
  return new Map(lanes);
};

const endStates = async (lanes: ReadonlyMap<string, Lane>): Promise<Map<string, EndState>> =>
  new Map(await Promise.all([...lanes].map(async ([name, lane]) => [name, await lane.endState()] as const)));

const differences = (states: ReadonlyMap<string, EndState>): string[] =>
  [...undisturbed].flatMap(([name, expected]) =>
    differencesOf(expected, states.get(name) ?? {}).map((difference) => `${name}: ${difference}`),
  );

/** Chooses where jobs are caught: in this first share of what they do, so that they have something left. */
const choosePoints = (
  salt: string,
  jobs: readonly JobName[],
  share: number,
): ReadonlyMap<JobName, CatchPoint> => {
  const random = createRandom(seed, salt);
  return new Map(
    jobs.map((job) => {
      const nth = 1 + random.int(Math.ceil((statements.get(job) ?? 1) * share));
      return [job, { nth, side: random.pick(SIDES) }];
    }),
  );
};

const tell = (what: string, caught: readonly JobName[], points: ReadonlyMap<JobName, CatchPoint>): void => {
  const told = [...points].map(
    ([job, { nth, side }]) =>
      `${job} ${caught.includes(job) ? `${side} ${nth} of ${statements.get(job)}` : "had ended"}`,
  );
  console.log(`${what}: ${told.join(", ")}`);
};

it("does its work undisturbed, every job, and the comparison sees what each has done", () => {
  for (const [name, { works }] of Object.entries(LANES)) {
    const state = undisturbed.get(name) ?? {};
    for (const { name: job } of works()) {
      const facet = DONE_BY[job];
      expect(state[facet], job).not.toEqual(before[facet]);
      const skipped = { ...state, [facet]: before[facet] ?? [] };
      expect(differencesOf(state, skipped)).toHaveLength(1);
      expect(state[`outcome of ${job}`]?.[0], job).toMatch(
        job === "reconcile" ? /^failed records_missing: 2 / : /^completed $/,
      );
    }
    expect(keys.get(name)).toBe("");
    expect(state["stopped merges"]).toEqual([]);
    expect(state["changed by merges"]).toEqual([]);
    expect(state["unfinished jobs"]).toEqual([]);
    expect(state["leftovers"]?.filter((line) => !line.endsWith("\t0"))).toEqual([]);
  }
});

for (let round = 1; round <= ROUNDS; round += 1) {
  it(
    `ends alike, every job, after two times kill -9 of its process, ${round}`,
    async () => {
      const lanes = await openLanes();
      await Promise.all(
        [...lanes].map(async ([name, lane]) => {
          for (const kill of [1, 2]) {
            const points = choosePoints(`${name} ${round} ${kill}`, lane.jobs, kill === 1 ? 0.5 : 0.25);
            lane.gate.arm(points);
            await lane.start();
            const caught = await lane.inTheMiddle();
            await lane.gate.spring();
            await lane.kill();
            lane.gate.breakCaught();
            tell(`kill ${kill}`, caught, points);
            if (kill === 1) expect(new Set(caught)).toEqual(new Set(lane.jobs));
          }
          lane.gate.arm(new Map());
          await lane.start();
        }),
      );
      expect(differences(await endStates(lanes))).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it.each(["redis", "clickhouse"] as const)(
    `ends alike, every job, after a restart of %s, ${round}`,
    async (server) => {
      const lanes = await openLanes();
      await Promise.all(
        [...lanes].map(async ([name, lane]) => {
          const points = choosePoints(`${name} ${round} ${server}`, lane.jobs, 0.75);
          lane.gate.arm(points);
          await lane.start();
          const caught = await lane.inTheMiddle();
          tell(server, caught, points);
          expect(new Set(caught)).toEqual(new Set(lane.jobs));
        }),
      );
      const gates = [...lanes.values()].map(({ gate }) => gate);
      await Promise.all(gates.map((gate) => gate.spring()));
      await system.stack[server].kill();
      // The answers that wait here are lost with ClickHouse.
      if (server === "clickhouse") for (const gate of gates) gate.breakCaught();
      await system.stack[server].start();
      for (const gate of gates) gate.release();
      expect(differences(await endStates(lanes))).toEqual([]);
    },
    TIMEOUT_MS,
  );
}
