import { CommandError } from "../explain/explain.ts";
import { EXIT } from "../explain/exit-code.ts";

export type YesOption = { readonly yes?: true };

export const YES_FLAG = ["--yes", "confirm; nothing is done without it"] as const;

/** `what`: such as "this erases …". @throws CommandError */
export const requireYes = ({ yes }: YesOption, what: string): void => {
  if (yes === true) return;
  throw new CommandError(`${what}: add --yes to do it`, { exitCode: EXIT.usage });
};
