import type { Environment } from "@conversation-export/runtime";
import type { ExitCode } from "../explain/exit-code.ts";
import type { Print } from "../output/print.ts";

export type CommandDeps = {
  readonly env: Environment;
  /** Standard output: only the result. */
  readonly print: Print;
  /** Standard error. */
  readonly say: Print;
  /** null: no terminal. */
  readonly terminal: NodeJS.WriteStream | null;
  /** null: no terminal. */
  readonly screen: { clear(): void } | null;
  readonly now: () => Date;
  /** Until `release`, Ctrl-C only aborts the signal. */
  readonly catchInterrupt: () => { readonly signal: AbortSignal; release(): void };
};

export type ProgramDeps = CommandDeps & {
  readonly setExitCode: (code: ExitCode) => void;
};

export type JsonOption = { readonly json?: true };
