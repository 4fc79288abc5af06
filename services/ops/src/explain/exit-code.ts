/** Scripts rely on them; docs/command-line.md lists them. */
export const EXIT = {
  done: 0,
  /** Rejected request, failed or cancelled job, or a problem found by `doctor`. */
  failed: 1,
  /** Wrong arguments or variables, or no `--yes`. */
  usage: 2,
  /** A server does not answer. */
  away: 3,
  /** The job ended, but its source did not hold all. */
  partly: 4,
  /** Ctrl-C while following; the job continues. */
  detached: 130,
  /** SIGTERM, as at a Job's deadline. */
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
