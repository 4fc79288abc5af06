import type { Writable } from "node:stream";
import type { RetryNote } from "../http/retry.ts";
import { visibleText } from "../http/visible-text.ts";
import type { Note } from "./pull.ts";
import { say } from "./say.ts";

const EVERY_MS = 5_000;
const ON_TERMINAL_MS = 200;
const BAR = 24;

export type Progress = {
  update(note: Note): void;
  retry(note: RetryNote): void;
  end(): void;
};

const count = (value: number): string => value.toLocaleString("en-US");

const duration = (seconds: number): string =>
  seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;

const barOf = (done: number): string => {
  const full = Math.round(done * BAR);
  return `[${"#".repeat(full)}${".".repeat(BAR - full)}]`;
};

const RATED_SECONDS = 1;

export const progressLine = (note: Note, seconds: number): string => {
  const isRated = seconds >= RATED_SECONDS;
  const parts = [`${note.list}: ${count(note.lines)} records`];
  if (isRated) parts.push(`${count(Math.round(note.lines / seconds))}/s`);
  if (note.isFirstPass && note.done !== null) {
    parts.push(`${barOf(note.done)} ${Math.floor(note.done * 100)} %`);
    if (isRated && note.done > 0.01) parts.push(`${duration((seconds / note.done) * (1 - note.done))} left`);
  }
  if (note.watermark !== null) parts.push(`complete up to ${note.watermark}`);
  return parts.join(", ");
};

export const createProgress = (deps: {
  readonly output: Writable & { readonly isTTY?: boolean };
  readonly json: boolean;
  /** Monotonic ms. */
  readonly clock: () => number;
}): Progress => {
  const { output, json, clock } = deps;
  const isTerminal = output.isTTY === true && !json;
  const everyMs = isTerminal ? ON_TERMINAL_MS : EVERY_MS;
  let started = clock();
  let reported = clock();
  let list: string | undefined;
  return {
    update: (note) => {
      if (note.list !== list) {
        list = note.list;
        started = clock();
      }
      if (clock() - reported < everyMs) return;
      reported = clock();
      const line = progressLine(note, (reported - started) / 1_000);
      if (isTerminal) output.write(`\r\u001b[2K${visibleText(line)}`);
      else say(output, json ? JSON.stringify({ progress: note }) : line);
    },
    retry: ({ error, attempt, attempts, waitMs }) => {
      if (isTerminal) output.write("\r\u001b[2K");
      const text = `${error.message}; attempt ${attempt} of ${attempts} in ${(waitMs / 1_000).toFixed(1)} s`;
      const value = { retry: { error: error.message, attempt, attempts, waitMs: Math.round(waitMs) } };
      say(output, json ? JSON.stringify(value) : text);
    },
    end: () => {
      if (isTerminal) output.write("\r\u001b[2K");
    },
  };
};
