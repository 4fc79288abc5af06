/** Scripts rely on them; docs/command-line.md lists them. */
export const EXIT = {
  done: 0,
  /** Also a problem found by `doctor`. */
  failed: 1,
  /** Also without `--yes`. */
  usage: 2,
  /** A server does not answer. */
  away: 3,
  /** The source did not hold all. */
  partly: 4,
  /** The job continues. */
  detached: 130,
  /** SIGTERM, as at a Job's deadline. */
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
