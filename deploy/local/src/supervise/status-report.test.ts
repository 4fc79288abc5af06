import { expect, test } from "vitest";
import type { SupervisorStatus } from "./control-socket.ts";
import { describeSystems } from "./status-report.ts";

const isStopped = (pid: number): boolean => pid === 13;
const running = (
  phase: SupervisorStatus["phase"],
  pids: Record<string, number | null>,
): SupervisorStatus => ({
  phase,
  processes: Object.entries(pids).map(([name, pid]) => ({ name, pid, address: `address of ${name}` })),
});
const describe = (...statuses: (SupervisorStatus | undefined)[]) => {
  const folders = [".local", ".local/demo"];
  const systems = statuses.map((status, index) => ({ folder: folders[index] ?? "", status }));
  const { lines, exitCode } = describeSystems(systems, isStopped);
  return [exitCode, lines.at(-1)];
};

test("the exit code and the last line say whether all is up", () => {
  const ready = running("ready", { kafka: 1, ingest: 2 });
  expect(describe()).toEqual([3, "nothing is up: start with `make up` or `make demo KEEP=1`"]);
  expect(describe(ready)).toEqual([0, "all up"]);
  expect(describe(ready, running("ready", { kafka: 3, ingest: 4 }))).toEqual([0, "all up"]);
  const down = running("ready", { kafka: 1, ingest: null });
  expect(describe(down)).toEqual([1, "down: ingest (make restart S=ingest)"]);
  expect(describe(down, ready)).toEqual([1, "down: ingest (make restart S=ingest)"]);
  expect(describe(running("ready", { kafka: 13 }))).toEqual([1, "stopped: kafka (make restart S=kafka)"]);
  expect(describe(running("starting", {}))).toEqual([1, ".local: starting"]);
  expect(describe(ready, undefined)).toEqual([1, ".local/demo: its supervisor does not answer"]);
});

test("each system has its folder and a line for each process", () => {
  const status = running("ready", { kafka: 1, ingest: null });
  expect(describeSystems([{ folder: ".local/demo", status }], isStopped).lines.slice(0, 3)).toEqual([
    ".local/demo:",
    "kafka       up      1         address of kafka",
    "ingest      down    -         address of ingest",
  ]);
});
