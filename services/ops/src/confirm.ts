import { CommandError } from "./explain.ts";
import { EXIT } from "./exit-code.ts";

export type YesOption = { readonly yes?: true };

export const YES_FLAG = ["--yes", "do it; without it nothing happens"] as const;

/** Throws `CommandError` unless the person has said `--yes`. `what`: what would happen, as in "this erases …". */
export const requireYes = ({ yes }: YesOption, what: string): void => {
  if (yes === true) return;
  throw new CommandError(`${what}: add --yes to do it`, { exitCode: EXIT.usage });
};
