import { MultiBar } from "cli-progress";
import { count } from "./print.ts";

/** Tasks that each progress from 0 to `total` of `unit`. */
export type Tasks = { readonly names: readonly string[]; readonly total: number; readonly unit: string };

export type Progress = {
  update(name: string, value: number): void;
  stop(): void;
};

const LINE_EVERY_MS = 5_000;

const createBars = (out: NodeJS.WriteStream, { names, total, unit }: Tasks): Progress => {
  const started = performance.now();
  const width = Math.max(...names.map((name) => name.length));
  const all = new MultiBar({
    format: "  {name} {bar} {percentage}%  {done}  {rate}",
    stream: out,
    barsize: 30,
    barCompleteChar: "█",
    barIncompleteChar: "░",
    hideCursor: true,
    autopadding: true,
    emptyOnZero: true,
  });
  const bars = new Map(
    names.map((name) => [
      name,
      all.create(total, 0, { name: name.padEnd(width), done: `0 of ${count(total)}`, rate: "" }),
    ]),
  );
  const ended = new Set<string>();
  return {
    update: (name, value) => {
      // Keeps the final rate of a finished task.
      if (ended.has(name)) return;
      if (value >= total) ended.add(name);
      const rate = value / Math.max((performance.now() - started) / 1000, 0.1);
      bars.get(name)?.update(value, {
        done: `${count(value)} of ${count(total)}`,
        rate: `${count(rate)} ${unit}/s`,
      });
    },
    stop: () => all.stop(),
  };
};

const createLines = (out: NodeJS.WriteStream, { names, total, unit }: Tasks): Progress => {
  const values = new Map(names.map((name) => [name, 0]));
  const print = (): void => {
    const parts = [...values].map(([name, value]) => `${name} ${count(value)}`);
    out.write(`  ${parts.join(", ")} of ${count(total)} ${unit}\n`);
  };
  const timer = setInterval(print, LINE_EVERY_MS);
  return {
    update: (name, value) => void values.set(name, value),
    stop: () => {
      clearInterval(timer);
      print();
    },
  };
};

/** Bars on a terminal, else a line every few seconds. */
export const createProgress = (out: NodeJS.WriteStream, tasks: Tasks): Progress =>
  out.isTTY ? createBars(out, tasks) : createLines(out, tasks);
