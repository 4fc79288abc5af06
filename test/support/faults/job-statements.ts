import type { JobName } from "@conversation-export/queue";

/**
 * Statements by which the jobs are known: those that write, and those between which a job has something to lose. What a
 * process sends at its start is none of them.
 */
const STATEMENTS: Readonly<Record<JobName, RegExp>> = {
  windows: /INSERT INTO upload_windows|groupUniqArray\(p\)/,
  reconcile: /"kind":"carried"/,
  replay: /(INSERT INTO|FROM) replayed_letters/,
  retention: /param_run=retention-|DROP PART \{name/,
  erasure:
    /\berase \w|INSERT INTO suppressions(?![^]*"secret")|(INSERT INTO|ALTER TABLE) data_subject_requests/,
  compact: /OPTIMIZE TABLE|compaction_checks|param_run=compact |INSERT INTO upload_windows/,
  backfill:
    /INSERT INTO (conversations|conversation_updates|handoffs|messages|end_users) \(|SYSTEM STOP MERGES|INSERT INTO job_keys(?![^]*"carried")|(DELETE FROM \w+|ALTER TABLE \w+ DELETE) WHERE/,
};

/** Whose statement it is, of these jobs; null: of none of them. */
export const jobOfStatement =
  (jobs: readonly JobName[]) =>
  (text: string): JobName | null =>
    jobs.find((job) => STATEMENTS[job].test(text)) ?? null;
