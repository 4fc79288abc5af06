import { MultiBar } from "cli-progress";
import { count } from "./print.ts";

export type Tasks = { readonly names: readonly string[]; readonly total: number; readonly unit: string };

export type Progress = {
  update(name: string, value: number): void;
  stop(): void;
};

const LINE_EVERY_MS = 5_000;

const createBars = (out: NodeJS.WriteStream, { names, total, unit }: Tasks): Progress => {
  const width = Math.max(...names.map((name) => name.length));
  const all = new MultiBar({
    format: "  {name} {bar} {percentage}%  {done}",
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
      all.create(total, 0, { name: name.padEnd(width), done: `0 of ${count(total)} ${unit}` }),
    ]),
  );
  return {
    update: (name, value) =>
      bars.get(name)?.update(value, { done: `${count(value)} of ${count(total)} ${unit}` }),
    stop: () => all.stop(),
  };
};

const createLines = (out: NodeJS.WriteStream, { names, total, unit }: Tasks): Progress => {
  const values = new Map(names.map((name) => [name, 0]));
  const describe = (): string => [...values].map(([name, value]) => `${name} ${count(value)}`).join(", ");
  let printed = describe();
  const print = (): void => {
    const line = describe();
    if (line === printed) return;
    printed = line;
    out.write(`  ${line} of ${count(total)} ${unit}\n`);
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

export const createProgress = (out: NodeJS.WriteStream, tasks: Tasks): Progress =>
  out.isTTY ? createBars(out, tasks) : createLines(out, tasks);
