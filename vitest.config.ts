import { defineConfig } from "vitest/config";

const full = process.env["TEST_SIZE"] === "full";
const seed = process.env["FC_SEED"] ?? String(Math.floor(Math.random() * 2 ** 31));
console.log(`fast-check: FC_SEED=${seed}`);

/** Tests on real servers: one file after another, each in a process of its own. */
const serial = {
  pool: "forks",
  fileParallelism: false,
  maxWorkers: 1,
  testTimeout: full ? 30 * 60_000 : 3 * 60_000,
  hookTimeout: full ? 10 * 60_000 : 3 * 60_000,
  teardownTimeout: 60_000,
} as const;

/** Tests of one server that also hold on two shards. */
const ON_TWO_SHARDS = [
  "integration/warehouse-pages",
  "integration/warehouse-reference",
  "integration/warehouse-writing",
  "integration/compaction-stores",
  "integration/backfill-landing",
  "integration/retention",
  "integration/erasure",
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
    setupFiles: ["./deploy/check/fast-check.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["{packages,services,deploy,test/support}/**/*.test.ts"],
          testTimeout: full ? 120_000 : 20_000,
        },
      },
      { extends: true, test: { name: "integration", include: ["test/integration/**/*.test.ts"], ...serial } },
      { extends: true, test: { name: "e2e", include: ["test/e2e/**/*.test.ts"], ...serial } },
      {
        extends: true,
        test: {
          name: "cluster",
          include: ["test/cluster/**/*.test.ts", ...ON_TWO_SHARDS.map((name) => `test/${name}.test.ts`)],
          ...serial,
          env: { FC_SEED: seed, TEST_SHARDS: "2" },
        },
      },
    ],
  },
});
