import { text } from "node:stream/consumers";
import {
  type Candidates,
  exceptionsOfAnswer,
  conditionsOfAnswer,
  someHasMoved as someOfAnswer,
} from "./sql/identity-sql.ts";
import type { ReadShape } from "./sql/page-sql.ts";
import {
  exceptionsStatement,
  conditionsStatement,
  type Parameters,
  movedStatement,
  type SendStatement,
} from "./page-statements.ts";

/** To ask before the range is read. @throws WarehouseError from every method */
export type AskForConditions = {
  /** `candidates` null: about the client; `hasExceptions`: `conditionsAtOnce` has just returned null. */
  conditions(
    candidates: Candidates | null,
    parameters: Parameters,
    signal: AbortSignal | undefined,
    hasExceptions?: boolean,
  ): Promise<ReadShape>;
  /** null: some candidates may have several dates. */
  conditionsAtOnce(
    candidates: Candidates,
    parameters: Parameters,
    signal: AbortSignal | undefined,
  ): Promise<ReadShape | null>;
};

export const createAskForConditions = (deps: {
  readonly send: SendStatement;
  readonly isSharded: () => Promise<boolean>;
  readonly datesKnown: () => Promise<number>;
}): AskForConditions => {
  const { send, isSharded, datesKnown } = deps;

  const conditionsAtOnce: AskForConditions["conditionsAtOnce"] = async (candidates, parameters, signal) => {
    const known = await datesKnown();
    if (known === 0) return null;
    const sharded = await isSharded();
    const question = exceptionsStatement(candidates, { ...parameters, known }, sharded);
    const exceptions = await send(question, text, signal);
    const { hasErased, atMovedDate, since } = exceptionsOfAnswer(exceptions);
    if (atMovedDate || since === null) return null;
    // A record's dates are stored before its entries, so they are all there by now.
    const statement = movedStatement(String(parameters["client"]), since, sharded);
    if (since.length > 0 && someOfAnswer(await send(statement, text, signal))) return null;
    return { hasMoved: false, hasErased, sharded };
  };

  const conditions: AskForConditions["conditions"] = async (
    candidates,
    parameters,
    signal,
    hasExceptions = false,
  ) => {
    if (candidates !== null && !hasExceptions) {
      const atOnce = await conditionsAtOnce(candidates, parameters, signal);
      if (atOnce !== null) return atOnce;
    }
    const sharded = await isSharded();
    const known = candidates === null ? 0 : await datesKnown();
    const statement = conditionsStatement(candidates, { ...parameters, known }, sharded);
    return { ...conditionsOfAnswer(await send(statement, text, signal)), sharded };
  };
  return { conditions, conditionsAtOnce };
};
