import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { createLookAhead } from "./look-ahead.ts";
import { askNearFirst } from "./near-part.ts";
import type { AskForFacts } from "./ask-facts.ts";
import type { MessagePageQuery, Page } from "./page.ts";
import { boundStatement, candidatesOfPage, type PagedList, pageStatement } from "./page-statements.ts";
import type { SendStatement } from "./send-statement.ts";
import { type HeadAndRecords, type PageHead, parsePageHead, splitHead } from "./page-stream.ts";
import { unexpectedAnswer } from "../session/warehouse-error.ts";

/** A page that finds too few records looks at this many times more rows. */
const ROWS_FACTOR = 4;

/** The first rows of a window behind a position. */
export type Bound = { readonly date: number; readonly rows: number; readonly keys: number };

/** Parses the answer to the statement of `boundOf`. @throws WarehouseError when it is none */
export const boundOfAnswer = (answer: string): Bound => {
  const [, date, rows, keys] = /^(\d+) (\d+) (\d+)\n$/.exec(answer) ?? [];
  if (keys === undefined) throw unexpectedAnswer();
  return { date: Number(date), rows: Number(rows), keys: Number(keys) };
};

const openPage = (stream: Readable): Promise<HeadAndRecords<PageHead>> => splitHead(stream, parsePageHead);

/**
 * Reads pages of one list. A page is a range of rows that holds somewhat more records than the page; the
 * range is chosen first, from how many rows the records of this client had before.
 *
 * @param deps.initial rows per record that are assumed for a client without a previous page
 * @param deps.spare further rows to look at
 * @param deps.notedDates see `createNotedDates`
 * @throws WarehouseError
 */
export const createPageReader = (deps: {
  readonly list: PagedList;
  readonly initial: number;
  readonly spare: number;
  readonly send: SendStatement;
  readonly askForFacts: AskForFacts;
  readonly isSpread: () => Promise<boolean>;
  readonly notedDates: () => Promise<number>;
}): ((query: MessagePageQuery) => Promise<Page>) => {
  const { list, send, askForFacts, isSpread, notedDates } = deps;
  const lookAhead = createLookAhead(deps);

  return async (query) => {
    const { clientId, pageSize, signal } = query;
    const spread = await isSpread();
    const noted = await notedDates();
    for (let rows = lookAhead.candidates(clientId, pageSize); ; rows *= ROWS_FACTOR) {
      const bound = await askNearFirst(
        query.after?.date ?? query.since,
        query.to,
        async (to) => boundOfAnswer(await send(boundStatement(list, { ...query, to }, rows), text, signal)),
        (found) => found.rows === rows,
      );
      if (bound.rows === 0) return { rows: 0, next: null, nextIsWhole: true, records: Readable.from([]) };
      const atEnd = bound.rows < rows;
      if (!atEnd && list.everyKeyIsLive && bound.keys <= pageSize) continue;
      const at = { bound: atEnd ? query.to - 1 : bound.date, noted, spread };
      const { candidates, parameters } = candidatesOfPage(list, query, at);
      // Before the page is read, see `AskForFacts`.
      const { several, hiding } = await askForFacts(candidates, parameters, signal);
      // Each record with several dates has at least one key that is not live.
      if (list.everyKeyIsLive) lookAhead.learn(clientId, Math.max(bound.keys - several, 1), bound.rows);
      const statement = pageStatement(list, query, { ...at, severalDates: several > 0, hiding });
      const { head, records } = await send(statement, openPage, signal);
      // A link must never lead to an empty page: a record behind the page is known, or there is none.
      if (head.keysBehind || atEnd) {
        if (!list.everyKeyIsLive && head.keysBehind) lookAhead.learn(clientId, head.rows, head.needed);
        return {
          rows: head.rows,
          next: head.keysBehind ? head.last : null,
          nextIsWhole: head.lastIsWhole,
          records,
        };
      }
      records.destroy();
    }
  };
};
