import type { SupervisorStatus } from "./control-socket.ts";

export type SystemStatus = {
  readonly folder: string;
  readonly status: SupervisorStatus | undefined;
};

/** 2 means an unknown command. */
export const exitCodes = { allUp: 0, someDown: 1, nothingUp: 3 } as const;

type Process = SupervisorStatus["processes"][number];
type IsStopped = (pid: number) => boolean;

const stateOf = ({ pid }: Process, isStopped: IsStopped): "up" | "down" | "stopped" =>
  pid === null ? "down" : isStopped(pid) ? "stopped" : "up";

export function describeProcesses({ processes }: SupervisorStatus, isStopped: IsStopped): string[] {
  return processes.map(
    (process) =>
      `${process.name.padEnd(12)}${stateOf(process, isStopped)}`.padEnd(20) +
      String(process.pid ?? "-").padEnd(10) +
      process.address,
  );
}

export function describeSystems(
  systems: readonly SystemStatus[],
  isStopped: IsStopped,
): { readonly lines: readonly string[]; readonly exitCode: number } {
  if (systems.length === 0)
    return {
      lines: ["nothing is up: start with `make up` or `make demo KEEP=1`"],
      exitCode: exitCodes.nothingUp,
    };
  const problems = systems.flatMap(({ folder, status }) => {
    if (status === undefined) return [`${folder}: its supervisor does not answer`];
    const { phase, processes } = status;
    return [
      ...(phase === "ready" ? [] : [`${folder}: ${phase}`]),
      ...processes
        .map((process) => ({ name: process.name, state: stateOf(process, isStopped) }))
        .filter(({ state }) => state !== "up")
        .map(({ name, state }) => `${state}: ${name} (make restart S=${name})`),
    ];
  });
  const tables = systems.flatMap(({ folder, status }) =>
    status === undefined ? [] : [`${folder}:`, ...describeProcesses(status, isStopped)],
  );
  return problems.length === 0
    ? { lines: [...tables, "all up"], exitCode: exitCodes.allUp }
    : { lines: [...tables, ...problems], exitCode: exitCodes.someDown };
}
