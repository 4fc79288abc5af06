import type { Environment } from "@conversation-export/runtime";
import type { ExitCode } from "../explain/exit-code.ts";
import type { Print } from "../output/print.ts";

export type CommandDeps = {
  readonly env: Environment;
  /** Writes to standard output, which holds only the result. */
  readonly print: Print;
  /** Writes a line of progress or warning to standard error. */
  readonly say: Print;
  /** Standard error for a progress bar; null when it is no terminal. */
  readonly terminal: NodeJS.WriteStream | null;
  /** Empties the terminal of standard output; null when it is none. */
  readonly screen: { clear(): void } | null;
  readonly now: () => Date;
  /** Until `release`, Ctrl-C aborts the signal instead of ending the process. */
  readonly catchInterrupt: () => { readonly signal: AbortSignal; release(): void };
};

/** What else the program is given. */
export type ProgramDeps = CommandDeps & {
  /** For a command that prints its answer and ends with another code than 0. */
  readonly setExitCode: (code: ExitCode) => void;
};

export type JsonOption = { readonly json?: true };
