import { text } from "node:stream/consumers";
import {
  type Candidates,
  exceptionsOfAnswer,
  type Facts,
  factsOfAnswer,
  someHasMoved as someOfAnswer,
} from "./sql/identity-sql.ts";
import { exceptionsStatement, factsStatement, type Parameters, movedStatement } from "./page-statements.ts";
import type { SendStatement } from "./send-statement.ts";

/** To ask before the range is read. @throws WarehouseError from every method */
export type AskForFacts = {
  /** `candidates` null: about the client; `hasExceptions`: `factsAtOnce` has just returned null. */
  facts(
    candidates: Candidates | null,
    parameters: Parameters,
    signal: AbortSignal | undefined,
    hasExceptions?: boolean,
  ): Promise<Facts>;
  /** null: some candidates may have several dates. */
  factsAtOnce(
    candidates: Candidates,
    parameters: Parameters,
    signal: AbortSignal | undefined,
  ): Promise<Facts | null>;
};

export const createAskForFacts = (deps: {
  readonly send: SendStatement;
  readonly isSharded: () => Promise<boolean>;
}): AskForFacts => {
  const { send, isSharded } = deps;

  const factsAtOnce: AskForFacts["factsAtOnce"] = async (candidates, parameters, signal) => {
    if (!(Number(parameters["noted"]) > 0)) return null;
    const sharded = await isSharded();
    const exceptions = await send(exceptionsStatement(candidates, parameters, sharded), text, signal);
    const { hasErased, atNotedDate, since } = exceptionsOfAnswer(exceptions);
    if (atNotedDate || since === null) return null;
    // A record's dates are stored before its entries, so they are all there by now.
    const statement = movedStatement(String(parameters["client"]), since, sharded);
    if (since.length > 0 && someOfAnswer(await send(statement, text, signal))) return null;
    return { hasMoved: false, hasErased };
  };

  const facts: AskForFacts["facts"] = async (candidates, parameters, signal, hasExceptions = false) => {
    if (candidates !== null && !hasExceptions) {
      const atOnce = await factsAtOnce(candidates, parameters, signal);
      if (atOnce !== null) return atOnce;
    }
    const statement = factsStatement(candidates, parameters, await isSharded());
    return factsOfAnswer(await send(statement, text, signal));
  };
  return { facts, factsAtOnce };
};
