import type { JobName } from "@conversation-export/queue";

/**
 * Statements that identify each job: those that write, and those between which it has something to lose. No
 * statement that a process sends at its start matches. A statement is of the first job that it matches.
 */
const STATEMENTS: Readonly<Record<JobName, RegExp>> = {
  windows: /INSERT INTO upload_windows|groupUniqArray\(p\)/,
  reconcile: /param_run=reconcile-|"run_id":"reconcile-/,
  replay: /(INSERT INTO|FROM) replayed_dead_letters/,
  retention: /param_run=retention-|"id":"retention-|=\['expired\/|DROP PART \{name/,
  erasure:
    /\berasure_keys\b|INSERT INTO suppressions(?![^]*"secret")|(INSERT INTO|ALTER TABLE) data_subject_requests/,
  compact: /param_run=compact-|INSERT INTO upload_windows/,
  backfill:
    /INSERT INTO (record_dates|conversations|conversation_updates|handoffs|messages|end_users) \(|backfill_rows|INSERT INTO job_keys|(DELETE FROM \w+|ALTER TABLE \w+ DELETE) WHERE/,
};

const JOBS = Object.keys(STATEMENTS) as JobName[];

/** The job that sent a statement; null when none of `jobs` did. */
export const jobOfStatement =
  (jobs: readonly JobName[]) =>
  (text: string): JobName | null =>
    JOBS.find((job) => jobs.includes(job) && STATEMENTS[job].test(text)) ?? null;
