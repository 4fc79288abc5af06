import { CommandError, exitCodeOf, explain } from "../explain/explain.ts";
import { EXIT, type ExitCode } from "../explain/exit-code.ts";
import { renderColumns } from "../output/print.ts";

/** `problem`: does not work; `skipped`: a variable is missing. */
export type FindingState = "ok" | "warning" | "problem" | "away" | "skipped";

export type Finding = {
  readonly area: string;
  readonly name: string;
  readonly state: FindingState;
  readonly found: string;
  /** null: nothing to do. */
  readonly advice: string | null;
};

export type Findings = readonly Finding[];

export const findingsOf = (area: string) => {
  const make =
    (state: FindingState) =>
    (name: string, found: string, advice: string): Finding => ({ area, name, state, found, advice });
  return {
    ok: (name: string, found: string): Finding => ({ area, name, state: "ok", found, advice: null }),
    warning: make("warning"),
    problem: make("problem"),
    skipped: make("skipped"),
  };
};

/** Without those that do not apply. */
export const applying = <T>(all: readonly (T | false)[]): T[] => all.filter((one): one is T => one !== false);

const failedFinding = (area: string, name: string, error: unknown): Finding => {
  const text = explain(error);
  if (text === undefined) throw error;
  const away = error instanceof CommandError && exitCodeOf(error) === EXIT.away;
  const detail = error instanceof CommandError ? error.detail : null;
  // The message then includes the advice.
  const { found, advice } = detail ?? { found: text, advice: null };
  return { area, name, state: away ? "away" : "problem", found, advice };
};

/** Rethrows bugs. */
export const attempt = async (
  area: string,
  name: string,
  check: () => Promise<Finding | Findings>,
): Promise<Findings> => {
  try {
    return [await check()].flat();
  } catch (error) {
    return [failedFinding(area, name, error)];
  }
};

const count = (findings: Findings, state: FindingState): number =>
  findings.filter((finding) => finding.state === state).length;

const counted = (findings: Findings): string =>
  (["ok", "warning", "problem", "away", "skipped"] as const)
    .map((state) => [count(findings, state), state] as const)
    .filter(([found]) => found > 0)
    .map(([found, state]) => `${found} ${state}`)
    .join(", ");

export const renderFindings = (findings: Findings): string => {
  const table = renderColumns(
    findings.map(({ state, area, name, found }) => [state, area, name, found]),
  ).split("\n");
  const lines = findings.flatMap(({ advice }, at) => [
    table[at] ?? "",
    ...(advice === null ? [] : [`         -> ${advice}`]),
  ]);
  return [...lines, "", counted(findings)].join("\n");
};

/** `away` outweighs `problem`. */
export const exitCodeOfFindings = (findings: Findings): ExitCode => {
  if (findings.some(({ state }) => state === "away")) return EXIT.away;
  return findings.some(({ state }) => state === "problem") ? EXIT.failed : EXIT.done;
};
