import type { HeldSchedule, JobView } from "@conversation-export/queue";
import { CommandError } from "../explain/explain.ts";
import { wasAskedWrongly } from "./job-failure.ts";
import { type Print, renderColumns, renderJson, renderTable } from "../output/print.ts";
import { renderResult } from "../output/render-result.ts";
import { z } from "zod";

const iso = (instant: Date | null): string | null => instant?.toISOString() ?? null;

export const jobFields = (job: JobView) => ({
  id: job.id,
  queue: job.name,
  state: job.state,
  cancelling: job.cancelling,
  attempt: job.attempt,
  progress: job.progress,
  parts: job.parts,
  reason: job.reason,
  added_at: iso(job.addedAt),
  last_started_at: iso(job.lastStartedAt),
  ended_at: iso(job.endedAt),
  next_attempt_at: iso(job.nextAttemptAt),
  data: job.data,
  result: job.result,
});

const shareText = ({ progress, parts }: JobView): string => {
  if (progress !== null && progress.total !== null && progress.total > 0) {
    return `${Math.floor((progress.done / progress.total) * 100)} %`;
  }
  if (progress !== null && progress.done > 0) return `${progress.done} ${progress.unit}`;
  return parts === null ? "-" : `${parts.done}/${parts.total} parts`;
};

/** Reasons may be any text. */
const SHORT = 60;
const short = (text: string): string => {
  const line = text.replace(/[\p{Cc}\s]+/gu, " ").trim();
  return line.length > SHORT ? `${line.slice(0, SHORT - 1)}…` : line;
};

export const renderJobs = (jobs: readonly JobView[]): string =>
  renderTable(
    ["JOB", "QUEUE", "STATE", "PROGRESS", "ATTEMPT", "ADDED", "ENDED", "NOTE"],
    jobs.map((job) => [
      job.id,
      job.name,
      job.cancelling && job.endedAt === null ? "cancelling" : job.state,
      shareText(job),
      job.attempt,
      iso(job.addedAt) ?? "-",
      iso(job.endedAt) ?? "-",
      short(noteOf(job)),
    ]),
  );

const noteOf = ({ reason, result }: JobView): string => {
  const { held } = z
    .object({ held: z.int().default(0) })
    .catch({ held: 0 })
    .parse(result ?? {});
  return reason ?? (held > 0 ? `${held} ${held === 1 ? "request awaits" : "requests await"} approval` : "-");
};

export const renderHeld = (held: readonly HeldSchedule[]): string[] =>
  held.map(
    ({ name, job, reason, until }) =>
      `the schedule of ${name} is held until ${until.toISOString()}, since ${job} failed for good: ${short(reason)}. \`export-ops jobs retry ${job}\` goes on`,
  );

export const renderJob = (job: JobView): string => {
  const rows: [string, string][] = [
    ["job", job.id],
    ["queue", job.name],
    ["state", job.cancelling && job.endedAt === null ? "cancelling" : job.state],
    ["attempt", String(job.attempt)],
    ["progress", shareText(job)],
    ["added", iso(job.addedAt) ?? "-"],
    ["last started", iso(job.lastStartedAt) ?? "-"],
    ["ended", iso(job.endedAt) ?? "-"],
    ...(job.nextAttemptAt === null
      ? []
      : [["next attempt", job.nextAttemptAt.toISOString()] as [string, string]]),
    ["reason", job.reason ?? "-"],
    ["data", JSON.stringify(job.data)],
  ];
  const result = job.result === null ? "" : `\n\nresult\n${renderResult(job.result)}`;
  return `${renderColumns(rows)}${result}`;
};

/** @throws CommandError unless completed */
export const printEnded = (job: JobView, json: boolean, print: Print): void => {
  if (json) print(renderJson(jobFields(job)));
  else if (job.result !== null) print(renderResult(job.result));
  if (job.state === "completed") return;
  if (job.state === "cancelled") {
    throw new CommandError(
      `the job ${job.id} was cancelled: \`export-ops jobs retry ${job.id}\` continues it`,
    );
  }
  const reason = job.reason ?? "no reason is known";
  throw new CommandError(
    wasAskedWrongly(job)
      ? `the job ${job.id} failed: ${reason}. It would fail again: start a new one for input that exists; \`export-ops jobs remove ${job.id} --yes\` removes this one`
      : `the job ${job.id} failed: ${reason}. When the cause is gone, \`export-ops jobs retry ${job.id}\` continues it`,
  );
};
