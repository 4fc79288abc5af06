/** Exit codes of `export-ops`. Scripts rely on them; docs/command-line.md lists them. */
export const EXIT = {
  done: 0,
  /** The request was refused, the job failed or was cancelled, or `doctor` found a problem. */
  failed: 1,
  /** Wrong arguments or variables, or a command that needs `--yes`. */
  usage: 2,
  /** ClickHouse, Kafka or Redis does not answer. */
  away: 3,
  /** The job ended, but its source did not hold all that it was asked for. */
  partly: 4,
  /** Ctrl-C while a job was followed; the job continues. */
  detached: 130,
  /** SIGTERM, as at the deadline of a Job. */
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
