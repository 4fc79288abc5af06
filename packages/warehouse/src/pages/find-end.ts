import { text } from "node:stream/consumers";
import type { StatementName } from "../session/session.ts";
import { askNearFirst } from "./near-part.ts";
import type { PagePosition } from "./page.ts";
import { endStatement, type Parameters, type SendStatement } from "./page-statements.ts";
import { endOfAnswer, type RangedRows } from "./sql/page-sql.ts";

export type FoundEnd = {
  readonly keys: number;
  /** µs; 0 without keys. */
  readonly first: number;
  readonly end: PagePosition;
  readonly isLast: boolean;
};

/** `own`: parameters in addition to the range's; `to`: exclusive, µs. @throws WarehouseError */
export type FindEnd = (
  name: StatementName,
  rows: RangedRows,
  own: Parameters,
  window: { readonly after: PagePosition; readonly to: number },
  most: number,
  signal: AbortSignal | undefined,
) => Promise<FoundEnd>;

export const createFindEnd =
  (deps: { readonly send: SendStatement; readonly isSharded: () => Promise<boolean> }): FindEnd =>
  async (name, rows, own, { after, to }, most, signal) => {
    const sharded = await deps.isSharded();
    const ask = async (until: number) => {
      const parameters = { ...own, ...rangeParameters(after, { date: until, id: "" }), keys: most };
      return endOfAnswer(await deps.send(endStatement(name, rows, parameters, sharded), text, signal));
    };
    const { keys, first, last } = await askNearFirst(after.date, to, ask, (found) => found.keys === most);
    const isLast = keys < most;
    return { keys, first, end: isLast ? { date: to, id: "" } : last, isLast };
  };

export const rangeParameters = (after: PagePosition, end: PagePosition): Parameters => ({
  after_date: after.date,
  after_id: after.id,
  end_date: end.date,
  end_id: end.id,
});
