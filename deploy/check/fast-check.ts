import fc from "fast-check";

// All properties of a run share one seed, which vitest.config.ts prints. Set FC_SEED to repeat the run.
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  seed: Number(process.env["FC_SEED"]),
  numRuns: process.env["TEST_SIZE"] === "full" ? 1000 : 100,
});
