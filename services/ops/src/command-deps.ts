import type { Print } from "./print.ts";

/** What every command may use. */
export type CommandDeps = {
  /** Standard output: the result alone. */
  readonly print: Print;
  /** Standard error: what happens meanwhile, a line each. */
  readonly say: Print;
  /** Standard error when it is a terminal, where progress is drawn in place. */
  readonly terminal: NodeJS.WriteStream | null;
  readonly now: () => Date;
  /** From now on Ctrl-C aborts the signal and does not end the process, until `release`. */
  readonly catchInterrupt: () => { readonly signal: AbortSignal; release(): void };
};

export type JsonOption = { readonly json?: true };
