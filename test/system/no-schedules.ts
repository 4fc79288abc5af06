export const NO_SCHEDULES: Readonly<Record<string, string>> = Object.fromEntries(
  ["WINDOWS", "COMPACT", "ERASURE", "RETENTION", "RECONCILE"].map((name) => [
    `${name}_INTERVAL_SECONDS`,
    "0",
  ]),
);
