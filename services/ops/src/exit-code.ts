/** How `export-ops` ends. Scripts rely on these; docs/operations.md names them. */
export const EXIT = {
  done: 0,
  /** What was asked was refused, the job failed or was cancelled, or `doctor` found a problem. */
  failed: 1,
  /** Wrong arguments or variables, or a command that needs `--yes`. */
  usage: 2,
  /** ClickHouse, Kafka or Redis does not answer. */
  away: 3,
  /** Ctrl-C while a job was followed: the job goes on. */
  detached: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
