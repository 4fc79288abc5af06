import type { AskForConditions } from "./ask-conditions.ts";
import type { FindEnd } from "./find-end.ts";
import type { SendStatement } from "./page-statements.ts";

/** Of every way to read a list. */
export type ReadDeps = {
  readonly send: SendStatement;
  readonly findEnd: FindEnd;
  readonly askForConditions: AskForConditions;
  readonly isSharded: () => Promise<boolean>;
};
