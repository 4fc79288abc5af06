import fc from "fast-check";

// vitest.config.ts prints the seed; FC_SEED repeats it.
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  seed: Number(process.env["FC_SEED"]),
  numRuns: process.env["TEST_SIZE"] === "full" ? 1000 : 100,
});
