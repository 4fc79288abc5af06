import type { JobView } from "@conversation-export/queue";
import { SingleBar } from "cli-progress";
import type { Print } from "../output/print.ts";
import { visibleLines } from "../output/visible-lines.ts";

const EVERY_MS = 5_000;
/** Intervals until an unchanged line shows again that the command runs. */
const REPEAT_AFTER = 6;
const BAR_WIDTH = 28;

export type ProgressDisplay = {
  show(job: JobView): void;
  /** `stale`: hides what is shown until the next call. */
  report(text: string, stale?: boolean): void;
  stop(): void;
};

const count = (value: number): string => value.toLocaleString("en-US");

const shareOf = ({ progress, parts }: JobView): number | null => {
  if (progress !== null && progress.total !== null && progress.total > 0)
    return progress.done / progress.total;
  return parts === null || parts.total === 0 ? null : parts.done / parts.total;
};

/** null: it runs. */
const hindrance = (job: JobView): string | null => {
  if (job.cancelling) return "is being cancelled";
  if (job.state === "delayed") {
    const at = job.nextAttemptAt === null ? "" : `, tries again at ${job.nextAttemptAt.toISOString()}`;
    return `attempt ${job.attempt} failed: ${job.reason ?? "unknown"}${at}`;
  }
  return job.state === "waiting" ? "waits for a worker" : null;
};

export const describeProgress = (job: JobView): string => {
  const trouble = hindrance(job);
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

const lines = (id: string, say: Print): ProgressDisplay => {
  let latest: JobView | undefined;
  let said = "";
  let unsaid = 0;
  let old = false;
  const report = (): void => {
    if (latest === undefined || old) return;
    const text = describeProgress(latest);
    unsaid = text === said ? unsaid + 1 : 0;
    if (unsaid % REPEAT_AFTER !== 0) return;
    said = text;
    say(`${id}: ${text}`);
  };
  const timer = setInterval(report, EVERY_MS);
  return {
    show: (job) => {
      const first = latest?.state !== job.state;
      latest = job;
      if (first) report();
    },
    report: (text, stale = false) => {
      old = stale;
      say(`${id}: ${text}`);
    },
    stop: () => clearInterval(timer),
  };
};

const bar = (id: string, say: Print, stream: NodeJS.WriteStream): ProgressDisplay => {
  let latest: JobView | undefined;
  let old: string | null = null;
  const drawn = new SingleBar({
    stream,
    clearOnComplete: true,
    hideCursor: true,
    fps: 4,
    format: (_, { progress }) => {
      if (latest === undefined) return "";
      const full = Math.round(progress * BAR_WIDTH);
      const line = `${latest.name} [${"=".repeat(full).padEnd(BAR_WIDTH, "-")}] ${old ?? describeProgress(latest)}`;
      // The bar writes to the terminal itself; a wrapped line could not be overwritten.
      return visibleLines(line)
        .replaceAll("\n", " ")
        .slice(0, Math.max(20, stream.columns - 1));
    },
  });
  const timer = setInterval(() => drawn.updateETA(), 1_000);
  const draw = (job: JobView): void => {
    if (!drawn.isActive) drawn.start(1, 0);
    drawn.update(shareOf(job) ?? 0);
  };
  return {
    show: (job) => {
      latest = job;
      draw(job);
    },
    report: (text, stale = false) => {
      old = stale ? text : null;
      drawn.stop();
      say(`${id}: ${text}`);
      if (latest !== undefined) draw(latest);
    },
    stop: () => {
      clearInterval(timer);
      drawn.stop();
    },
  };
};

export const createJobProgress = (deps: {
  readonly id: string;
  readonly say: Print;
  readonly terminal: NodeJS.WriteStream | null;
}): ProgressDisplay =>
  deps.terminal === null ? lines(deps.id, deps.say) : bar(deps.id, deps.say, deps.terminal);
