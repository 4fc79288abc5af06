import type { Environment } from "@conversation-export/runtime";
import type { Print } from "../output/print.ts";

/** What every command is given. */
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

export type JsonOption = { readonly json?: true };
