export const isFullSize = process.env["TEST_SIZE"] === "full";

export const bySize = <T>(reduced: T, full: T): T => (isFullSize ? full : reduced);

/** TEST_SEED, or a new one, printed so that the run can be repeated. */
export const seedOfRun = (name: string): string => {
  const seed = process.env["TEST_SEED"] ?? String(Math.floor(Math.random() * 2 ** 31));
  console.log(`${name}: TEST_SEED=${seed}`);
  return seed;
};
