import type { Environment } from "@conversation-export/runtime";
import type { ExitCode } from "../explain/exit-code.ts";
import type { Print } from "../output/print.ts";

export type CommandDeps = {
  readonly env: Environment;
  /** To standard output, which holds only the result. */
  readonly print: Print;
  /** To standard error. */
  readonly say: Print;
  /** For a progress bar; null: no terminal. */
  readonly terminal: NodeJS.WriteStream | null;
  /** Standard output; null: no terminal. */
  readonly screen: { clear(): void } | null;
  readonly now: () => Date;
  /** Until `release`, Ctrl-C aborts the signal instead of ending the process. */
  readonly catchInterrupt: () => { readonly signal: AbortSignal; release(): void };
};

export type ProgramDeps = CommandDeps & {
  /** For commands that print their result and fail. */
  readonly setExitCode: (code: ExitCode) => void;
};

export type JsonOption = { readonly json?: true };
