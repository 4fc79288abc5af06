import type { JobName } from "@conversation-export/queue";

/** Statements that write, or between which a job can lose work; none is sent at start-up. The first match wins. */
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

export const jobOfStatement =
  (jobs: readonly JobName[]) =>
  (text: string): JobName | null =>
    JOBS.find((job) => jobs.includes(job) && STATEMENTS[job].test(text)) ?? null;
