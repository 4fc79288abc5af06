import { ConfigError } from "@conversation-export/runtime";
import { CommandError, exitCodeOf, explain } from "../explain.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { renderColumns } from "../print.ts";

/**
 * `warning`: works, but may bring trouble; `problem`: does not work as it should; `away`: a server does not answer;
 * `skipped`: not looked at, since something for it is missing.
 */
export type FindingState = "ok" | "warning" | "problem" | "away" | "skipped";

/** What was found about one thing. */
export type Finding = {
  readonly area: string;
  readonly name: string;
  readonly state: FindingState;
  readonly found: string;
  /** What to do; null when nothing is to be done. */
  readonly advice: string | null;
};

export type Findings = readonly Finding[];

/** Makes the findings of one area. */
export const findingsOf = (area: string) => ({
  ok: (name: string, found: string): Finding => ({ area, name, state: "ok", found, advice: null }),
  warning: (name: string, found: string, advice: string): Finding => ({
    area,
    name,
    state: "warning",
    found,
    advice,
  }),
  problem: (name: string, found: string, advice: string): Finding => ({
    area,
    name,
    state: "problem",
    found,
    advice,
  }),
  skipped: (name: string, found: string, advice: string | null = null): Finding => ({
    area,
    name,
    state: "skipped",
    found,
    advice,
  }),
});

/** What an error says, as a finding. Rethrows a bug. */
export const failedFinding = (area: string, name: string, error: unknown): Finding => {
  if (error instanceof ConfigError) {
    const found = error.problems.join("; ");
    return {
      area,
      name,
      state: "problem",
      found,
      advice: "set what docs/configuration.md names for this command",
    };
  }
  const text = explain(error);
  if (text === undefined) throw error;
  const away = error instanceof CommandError && exitCodeOf(error) === EXIT.away;
  const detail = error instanceof CommandError ? error.detail : null;
  // One whole sentence says itself what to do.
  const { found, advice } = detail ?? { found: text, advice: null };
  return { area, name, state: away ? "away" : "problem", found, advice };
};

/** The findings of a check, or the one that it could not be made. */
export const attempt = async (
  area: string,
  name: string,
  check: () => Promise<Findings> | Findings,
): Promise<Findings> => {
  try {
    return await check();
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

/** All findings by area, each with what to do below it, and a line of counts. */
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

/** How the command ends: with a problem, with a server that is away, or well. */
export const exitCodeOfFindings = (findings: Findings): ExitCode => {
  if (findings.some(({ state }) => state === "away")) return EXIT.away;
  return findings.some(({ state }) => state === "problem") ? EXIT.failed : EXIT.done;
};
