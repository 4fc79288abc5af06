import { usageError } from "../explain/explain.ts";

export type YesOption = { readonly yes?: true };

export const YES_FLAG = ["--yes", "confirm; nothing is done without it"] as const;

/** `what`: such as "this erases …". @throws CommandError */
export const requireYes = ({ yes }: YesOption, what: string): void => {
  if (yes === true) return;
  throw usageError(`${what}: add --yes to do it`);
};
