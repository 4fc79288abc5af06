import fc from "fast-check";

// One seed for the whole run, printed by vitest.config.ts; FC_SEED repeats it.
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  seed: Number(process.env["FC_SEED"]),
  numRuns: process.env["TEST_SIZE"] === "full" ? 1000 : 100,
});
