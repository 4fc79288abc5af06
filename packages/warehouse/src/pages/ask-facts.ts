import { text } from "node:stream/consumers";
import {
  type Candidates,
  doubtsOfAnswer,
  type Facts,
  factsOfAnswer,
  someHasSeveral as someOfAnswer,
} from "./sql/identity-sql.ts";
import { doubtsStatement, factsStatement, type Parameters, severalStatement } from "./page-statements.ts";
import type { SendStatement } from "./send-statement.ts";

/**
 * What the statement of a range has to heed about its candidates, or without candidates about the client. To be
 * asked before the range is read: what it does not name has one date by then.
 *
 * @param parameters of the candidates; `noted`: see `createNotedDates`
 * @throws WarehouseError
 */
export type AskForFacts = (
  candidates: Candidates | null,
  parameters: Parameters,
  signal: AbortSignal | undefined,
) => Promise<Facts>;

/** Looks at the candidates only where some of them may have several dates. */
export const createAskForFacts = (deps: {
  readonly send: SendStatement;
  readonly isSpread: () => Promise<boolean>;
}): AskForFacts => {
  const { send, isSpread } = deps;

  return async (candidates, parameters, signal) => {
    const spread = await isSpread();

    /** The dates of a record are stored before its entries, so those of all `names` are there by now. */
    const someHasSeveral = async (names: readonly string[]): Promise<boolean> =>
      names.length > 0 &&
      someOfAnswer(await send(severalStatement(String(parameters["client"]), names, spread), text, signal));

    if (candidates !== null && Number(parameters["noted"]) > 0) {
      const doubts = await send(doubtsStatement(candidates, parameters, spread), text, signal);
      const { hiding, atNotedDate, since } = doubtsOfAnswer(doubts);
      if (!atNotedDate && since !== null && !(await someHasSeveral(since))) return { several: 0, hiding };
    }
    return factsOfAnswer(await send(factsStatement(candidates, parameters, spread), text, signal));
  };
};
