import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";

const full = process.env["TEST_SIZE"] === "full";
const seed = process.env["FC_SEED"] ?? String(Math.floor(Math.random() * 2 ** 31));
console.log(`fast-check: FC_SEED=${seed}`);

/**
 * As many files at a time as processors, two to four, each in a process of its own. With three on two processors,
 * which are busy all the time, every file takes half as long again, and tests of faults failed now and then. One
 * number for all projects, so that their files share the workers.
 */
const parallel = { pool: "forks", maxWorkers: Math.min(Math.max(availableParallelism(), 2), 4) } as const;

const UNIT = [
  "{packages,services,deploy}/**/*.test.ts",
  "test/{chart,compare,documents,kubernetes,reference,sample}/**/*.test.ts",
];

/** Unit tests that need a process of their own: for what they replace in it, or for the memory that they measure. */
const APART = [
  "packages/bus/src/login/token-source.test.ts",
  "packages/client/src/command/targets/tables/table-writing.test.ts",
  "services/export-api/src/openapi/reference-page.test.ts",
];

const unit = {
  ...parallel,
  testTimeout: full ? 120_000 : 60_000,
  hookTimeout: 60_000,
} as const;

/** Tests on real servers, of the file itself or shared. */
const onServers = {
  ...parallel,
  setupFiles: ["./test/system/failed-logs.ts"],
  testTimeout: full ? 30 * 60_000 : 10 * 60_000,
  hookTimeout: 10 * 60_000,
  teardownTimeout: 60_000,
};

/** Tests that use up the processors, in which tests of faults beside them would wait too long. */
const LOUD = ["test/faults/exhaustion.test.ts", "test/faults/neighbours.test.ts"];

/** Tests of one server that also hold on two shards. */
const ON_TWO_SHARDS = [
  "integration/warehouse-pages",
  "integration/warehouse-reference",
  "integration/stamps",
  "integration/warehouse-writing",
  "integration/compaction-stores",
  "faults/backfill-landing",
  "integration/record-identity",
  "faults/moving-records",
  "integration/changes",
  "integration/retention",
  "faults/erasure-runs",
  "faults/erased-records",
  "integration/analytics",
  "integration/upkeep-jobs",
  "e2e/walks",
  "e2e/crash",
  "e2e/conformance-export",
  "e2e/conformance-records",
  "e2e/erasure",
  "e2e/backfill",
];

// A default export, since vitest reads nothing else.
export default defineConfig({
  test: {
    env: { FC_SEED: seed },
    // Only `make generate` writes the files that tests compare, missing ones too.
    update: "none",
    // A second, the default, is short beside other load.
    expect: { poll: { timeout: 20_000 } },
    setupFiles: ["./deploy/check/fast-check.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          ...unit,
          include: UNIT,
          exclude: [...configDefaults.exclude, ...APART],
          // A process for each file costs more than half of the time that these tests take.
          isolate: false,
        },
      },
      { extends: true, test: { name: "unit-apart", ...unit, include: APART } },
      {
        extends: true,
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          isolate: false,
          ...onServers,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          isolate: false,
          globalSetup: "./test/system/shared-system.ts",
          ...onServers,
        },
      },
      {
        extends: true,
        test: {
          name: "faults",
          include: ["test/faults/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...LOUD],
          ...onServers,
        },
      },
      {
        extends: true,
        // After all others, one at a time.
        test: {
          name: "faults-apart",
          include: LOUD,
          ...onServers,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "cluster",
          include: ["test/cluster/**/*.test.ts", ...ON_TWO_SHARDS.map((name) => `test/${name}.test.ts`)],
          globalSetup: "./test/system/shared-system.ts",
          ...onServers,
          env: { FC_SEED: seed, TEST_SHARDS: "2" },
        },
      },
    ],
  },
});
