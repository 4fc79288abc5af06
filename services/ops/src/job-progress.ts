import type { JobView } from "@conversation-export/queue";
import { SingleBar } from "cli-progress";
import type { Print } from "./print.ts";

const EVERY_MS = 5_000;
/** After so many times without news the line is said again, so that a reader sees that somebody still looks. */
const REPEAT_AFTER = 6;
const BAR_WIDTH = 28;
const PATIENCE_MS = 10_000;

export type ProgressDisplay = {
  show(job: JobView): void;
  stop(): void;
};

const count = (value: number): string => value.toLocaleString("en-US");

const shareOf = ({ progress, parts }: JobView): number | null => {
  if (progress !== null && progress.total !== null && progress.total > 0)
    return progress.done / progress.total;
  return parts === null || parts.total === 0 ? null : parts.done / parts.total;
};

/** null while the job is on its way as it should be. */
const hindrance = (job: JobView, now: Date): string | null => {
  if (job.cancelling) return "is being cancelled";
  if (job.state === "delayed") {
    const at = job.nextAttemptAt === null ? "" : `, tries again at ${job.nextAttemptAt.toISOString()}`;
    return `attempt ${job.attempt} failed: ${job.reason ?? "unknown"}${at}`;
  }
  if (job.state !== "waiting") return null;
  return job.startedAt === null && now.getTime() - job.addedAt.getTime() > PATIENCE_MS
    ? "waits for a worker: does the jobs service run, or is it busy? `export-ops doctor` tells"
    : "waits for a worker";
};

/** What there is to say about a job that has not ended, in one line. */
export const describeProgress = (job: JobView, now: Date): string => {
  const trouble = hindrance(job, now);
  if (trouble !== null) return trouble;
  const { progress, parts } = job;
  const share = shareOf(job);
  return [
    share === null ? "runs" : `${Math.floor(share * 100)} %`,
    progress === null || (progress.done === 0 && progress.total === null)
      ? ""
      : `${count(progress.done)}${progress.total === null ? "" : ` of ${count(progress.total)}`} ${progress.unit}`,
    parts === null
      ? ""
      : `${parts.done} of ${parts.total} parts${parts.failed > 0 ? `, ${parts.failed} failed` : ""}`,
    progress?.note ?? "",
  ]
    .filter((text) => text !== "")
    .join(", ");
};

const lines = (say: Print, now: () => Date): ProgressDisplay => {
  let latest: JobView | undefined;
  let said = "";
  let unsaid = 0;
  const tell = (): void => {
    if (latest === undefined) return;
    const text = describeProgress(latest, now());
    unsaid = text === said ? unsaid + 1 : 0;
    if (unsaid % REPEAT_AFTER !== 0) return;
    said = text;
    say(`${latest.id}: ${text}`);
  };
  const timer = setInterval(tell, EVERY_MS);
  return {
    show: (job) => {
      const first = latest?.state !== job.state;
      latest = job;
      if (first) tell();
    },
    stop: () => clearInterval(timer),
  };
};

const bar = (stream: NodeJS.WriteStream, now: () => Date): ProgressDisplay => {
  let latest: JobView | undefined;
  const drawn = new SingleBar({
    stream,
    clearOnComplete: true,
    hideCursor: true,
    fps: 4,
    format: (_, { progress }) => {
      if (latest === undefined) return "";
      const full = Math.round(progress * BAR_WIDTH);
      const line = `${latest.name} [${"=".repeat(full).padEnd(BAR_WIDTH, "-")}] ${describeProgress(latest, now())}`;
      // A line that wraps could not be drawn over.
      return line.slice(0, Math.max(20, stream.columns - 1));
    },
  });
  const timer = setInterval(() => drawn.updateETA(), 1_000);
  return {
    show: (job) => {
      const first = latest === undefined;
      latest = job;
      if (first) drawn.start(1, 0);
      drawn.update(shareOf(job) ?? 0);
    },
    stop: () => {
      clearInterval(timer);
      drawn.stop();
    },
  };
};

/** Shows how a job gets on: drawn in place on a terminal, else a line every few seconds and at each change of state. */
export const createJobProgress = (deps: {
  readonly say: Print;
  readonly terminal: NodeJS.WriteStream | null;
  readonly now: () => Date;
}): ProgressDisplay => (deps.terminal === null ? lines(deps.say, deps.now) : bar(deps.terminal, deps.now));
