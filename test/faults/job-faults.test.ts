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
import { redisCommand } from "../system/redis-command.ts";
import { type Depth, differencesOf, type EndState, readTables } from "./end-state.ts";
import { CLIENT, cloneDatabase, fillWithWork } from "./fault-data.ts";
import { type Lane, openLane, type Work, work } from "./lane.ts";
import { type CatchPoint, SIDES } from "./statement-gate.ts";
import { closeAllWindows } from "../system/compaction-load.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { createRandom } from "../sample/values/random.ts";

const PLANT = fileURLToPath(new URL("./plant.ts", import.meta.url));
const SIZES = bySize(
  { conversations: 30, deadLetters: 9, persons: 2, expired: 20, moved: 2, windows: 24 },
  { conversations: 3_000, deadLetters: 600, persons: 30, expired: 5_000, moved: 200, windows: 700 },
);
const ROUNDS = bySize(1, 6);
const TIMEOUT_MS = bySize(540_000, 1_800_000);
const startedAt = Date.now();

/** Jobs of one lane touch different rows and tables, or only read. */
const LANES = {
  writing: {
    depth: "readable",
    works: () => [
      work(backfillJob, backfillJob.data.parse({ clientId: CLIENT.backfill, source: { kind: "landing" } })),
      work(replayJob, replayJob.data.parse({ reasons: ["time_in_future"] })),
      work(reconcileJob, {
        from: new Date(startedAt).toISOString(),
        to: new Date(startedAt + 1).toISOString(),
        clientId: CLIENT.reconcile,
      }),
      work(windowsJob, { since: null }),
    ],
  },
  deleting: {
    depth: "stored",
    works: () => [
      work(erasureJob, { clientId: null, requestId: null }),
      work(retentionJob, { clientId: null, dryRun: false }),
    ],
  },
  compacting: {
    depth: "readable",
    works: () => [work(compactJob, { range: null, force: false, dryRun: false })],
  },
} satisfies Readonly<Record<string, { readonly works: () => readonly Work[]; readonly depth: Depth }>>;
type LaneName = keyof typeof LANES;
const LANE_NAMES = Object.keys(LANES) as LaneName[];

const DONE_BY: Readonly<Record<JobName, string>> = {
  backfill: `conversations of ${CLIENT.backfill}`,
  replay: `messages of ${CLIENT.replay}`,
  reconcile: "outcome of reconcile",
  windows: "upload_windows of ",
  erasure: `conversations of ${CLIENT.erasure}`,
  retention: `messages of ${CLIENT.retention}`,
  compact: `conversation_updates of ${CLIENT.compact}`,
};

let system: System;
let seed: string;
let scenarios = 0;
const open = new Map<LaneName, Lane>();
let before: EndState;
let undisturbed: ReadonlyMap<string, EndState>;
const keys = new Map<string, string>();
const statements = new Map<JobName, number>();

beforeAll(async () => {
  seed = seedOfRun("job faults");
  system = await startSystem("job-faults", { testRights: { otherDatabases: true } });
  await fillWithWork(system, { seed, sizes: SIZES, plant: PLANT });
  before = await readTables(system.stack.clickhouse.url("migrator"), "stored");
  const lanes = await ofAllLanes(openFresh);
  await Promise.all([...lanes.values()].map((lane) => lane.start()));
  undisturbed = await endStates(lanes);
  for (const [name, { jobs, gate, databaseUrl }] of lanes) {
    for (const job of jobs) statements.set(job, gate.seen().get(job) ?? 0);
    keys.set(name, await runSql(databaseUrl, "SELECT DISTINCT run_id, kind FROM job_keys FORMAT TSV"));
  }
}, TIMEOUT_MS);
afterAll(async () => {
  await Promise.all([...open.values()].map((lane) => lane.close()));
  await system?.stop();
});

const openFresh = async (name: LaneName): Promise<Lane> => {
  const { works, depth } = LANES[name];
  const index = LANE_NAMES.indexOf(name);
  await open.get(name)?.close();
  await redisCommand(`${system.stack.redis.url}/${index}`, "FLUSHDB");
  scenarios += 1;
  const database = `conversation_export_${scenarios}_${name}`;
  await cloneDatabase(system, database);
  if (name === "compacting") await closeAllWindows(system.stack.clickhouse.url("jobs", database));
  const lane = await openLane({
    system,
    database,
    index,
    works: works(),
    withIngest: name === "writing",
    depth,
  });
  open.set(name, lane);
  return lane;
};

const ofAllLanes = async (make: (name: LaneName) => Promise<Lane>): Promise<ReadonlyMap<LaneName, Lane>> =>
  new Map(await Promise.all(LANE_NAMES.map(async (name) => [name, await make(name)] as const)));

const endStates = async (lanes: ReadonlyMap<string, Lane>): Promise<Map<string, EndState>> =>
  new Map(await Promise.all([...lanes].map(async ([name, lane]) => [name, await lane.endState()] as const)));

const sweptStates = async (lanes: ReadonlyMap<string, Lane>): Promise<Map<string, EndState>> => {
  await Promise.all([...lanes.values()].map((lane) => lane.sweep()));
  return endStates(lanes);
};

const differences = (states: ReadonlyMap<string, EndState>): string[] =>
  [...undisturbed].flatMap(([name, expected]) =>
    differencesOf(expected, states.get(name) ?? {}).map((difference) => `${name}: ${difference}`),
  );

/** Within the first `share` of each job's statements, so that work is left. */
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

const report = (what: string, caught: readonly JobName[], points: ReadonlyMap<JobName, CatchPoint>): void => {
  const reported = [...points].map(
    ([job, { nth, side }]) =>
      `${job} ${caught.includes(job) ? `${side} ${nth} of ${statements.get(job)}` : "had ended"}`,
  );
  console.log(`${what}: ${reported.join(", ")}`);
};

/** A job's statements vary with load: if one ends before its point, the lane restarts with earlier points. */
const openCaught = async (name: LaneName, what: string, firstShare: number): Promise<Lane> => {
  for (let share = firstShare; ; share /= 2) {
    const lane = await openFresh(name);
    const points = choosePoints(`${name} ${what}`, lane.jobs, share);
    lane.gate.arm(points);
    await lane.start();
    const caught = await lane.inTheMiddle();
    report(what, caught, points);
    if (caught.length < lane.jobs.length && share > 0.05) continue;
    expect(new Set(caught)).toEqual(new Set(lane.jobs));
    return lane;
  }
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
    expect(state["masked rows"] ?? []).toEqual([]);
    expect(state["stopped merges"]).toEqual([]);
    expect(state["changed by merges"]).toEqual([]);
    expect(state["unfinished jobs"]).toEqual([]);
    expect(state["leftovers"]?.filter((line) => !line.endsWith("\t0"))).toEqual([]);
  }
});

const killSprung = async (lane: Lane): Promise<void> => {
  await lane.gate.spring();
  await lane.kill();
  lane.gate.breakCaught();
};

for (let round = 1; round <= ROUNDS; round += 1) {
  it(
    `ends alike, every job, after two times kill -9 of its process, ${round}`,
    async () => {
      const lanes = await ofAllLanes(async (name) => {
        const lane = await openCaught(name, `kill 1, ${round}`, 0.5);
        await killSprung(lane);
        const points = choosePoints(`${name} kill 2, ${round}`, lane.jobs, 0.25);
        lane.gate.arm(points);
        await lane.start();
        report("kill 2", await lane.inTheMiddle(), points);
        await killSprung(lane);
        lane.gate.arm(new Map());
        await lane.start();
        return lane;
      });
      expect(differences(await sweptStates(lanes))).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it.each(["redis", "clickhouse"] as const)(
    `ends alike, every job, after a restart of %s, ${round}`,
    async (server) => {
      const lanes = await ofAllLanes((name) => openCaught(name, `${server}, ${round}`, 0.75));
      const gates = [...lanes.values()].map(({ gate }) => gate);
      await Promise.all(gates.map((gate) => gate.spring()));
      await system.stack[server].kill();
      // Answers held by the gate are lost with ClickHouse.
      if (server === "clickhouse") for (const gate of gates) gate.breakCaught();
      await system.stack[server].start();
      for (const gate of gates) gate.release();
      expect(differences(await sweptStates(lanes))).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    `ends alike, every job, when its process was paused past its lock and another took over, ${round}`,
    async () => {
      const lanes = await ofAllLanes(async (name) => {
        const lane = await openCaught(name, `paused, ${round}`, 0.5);
        lane.gate.arm(new Map());
        await lane.takeOver();
        return lane;
      });
      expect(differences(await sweptStates(lanes))).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    `ends alike, every job, after Redis was emptied and the jobs were added again, ${round}`,
    async () => {
      const lanes = await ofAllLanes(async (name) => {
        const lane = await openCaught(name, `emptied, ${round}`, 0.75);
        await lane.gate.spring();
        await lane.emptyRedis();
        return lane;
      });
      // A new replay counts dead letters already sent as such.
      const counted = "writing: outcome of replay:";
      const found = differences(await sweptStates(lanes)).filter((one) => !one.startsWith(counted));
      expect(found).toEqual([]);
    },
    TIMEOUT_MS,
  );
}
