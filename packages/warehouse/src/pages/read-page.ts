import { text } from "node:stream/consumers";
import { rangeParameters } from "./find-end.ts";
import type { MessagePageQuery, Page, PageEnd, PagePosition } from "./page.ts";
import { instantsStatement, pageStatement, type Parameters } from "./page-statements.ts";
import { emptyPage, openPage, type RowsEnd } from "./page-stream.ts";
import type { ReadDeps } from "./read-deps.ts";
import type { List } from "./sql/list.ts";
import { instantsOfAnswer, type ReadShape } from "./sql/page-sql.ts";
import { isAwayError, WarehouseError } from "../session/warehouse-error.ts";

const TIE_EXTENSION = 10_000;
const SPARE_KEYS = 10;
const KEYS_FACTOR = 4;
/** Some for each record, and granules of all parts. */
const GUESSED_ROWS_PER_RECORD = 20;
const GUESSED_ROWS = 300_000;

/** In µs; small pages vary more. */
const lengthOf = (pace: number, pageSize: number): number =>
  1 + Math.ceil(pace * (pageSize + 1) * (1.2 + 3 / Math.sqrt(pageSize)));

const before = (date: number): PagePosition => ({ date, id: "" });

type Range = {
  readonly end: PagePosition;
  readonly isLast: boolean;
  /** Date of its first key, or of the position before it, µs. */
  readonly first: number;
  readonly hasMore?: boolean;
};

/** The end of a range is guessed, or asked for (docs/decisions/0003). @throws WarehouseError */
export const createPageReader = (
  deps: ReadDeps & { readonly list: List },
): ((query: MessagePageQuery) => Promise<Page>) => {
  const { list, send, findEnd, askForConditions, isSharded } = deps;

  const readPage = async (query: MessagePageQuery, isProbe = false): Promise<Page> => {
    const { clientId, pageSize, wholeTies, since, to, after = before(since), pace, signal } = query;
    const sharded = await isSharded();

    const own = { client: clientId, conversation: query.conversationId ?? "" };
    const parametersOf = (end: PagePosition): Parameters => ({
      ...own,
      ...rangeParameters(after, end),
      size: pageSize,
    });

    const choose = async (keys: number): Promise<Range | null> => {
      const name = `pages.end_of_${list.name}` as const;
      const found = await findEnd(name, list.rows, own, { after, to }, keys, signal);
      if (found.keys === 0) return null;
      const end = wholeTies && !found.isLast ? before(found.end.date + 1) : found.end;
      const isLast = found.isLast || (wholeTies && end.date === to);
      return { end, isLast, first: query.after?.date ?? found.first };
    };
    /** null: too few records. */
    const takeWholeInstants = async (range: Range, shape: ReadShape): Promise<Range | null> => {
      const statement = instantsStatement(list, shape, parametersOf(range.end));
      const { rows, last, before: lastWhole } = instantsOfAnswer(await send(statement, text, signal));
      if (rows <= pageSize) return range.isLast ? range : null;
      const hasMore = lastWhole > 0;
      const end = before((hasMore ? lastWhole : last) + 1);
      return { ...range, end, isLast: range.isLast && end.date === to, hasMore };
    };

    /** null: too few records, and others lie behind. */
    const open = async (
      range: Range,
      shape: ReadShape,
      size: number,
      most?: number,
    ): Promise<Page | null> => {
      let isBegun = false;
      let isShort = false;
      const endOfRows = async ({ rows, last, behind }: RowsEnd): Promise<PageEnd> => {
        const withPace = (next: PagePosition): PageEnd => {
          const pace = Math.ceil(Math.max(next.date - range.first, 0) / Math.max(rows, 1));
          return { rows, next, ...(rows > 0 && { pace }) };
        };
        if (last !== undefined && behind !== undefined) {
          return withPace(wholeTies && last.date < behind.date ? before(last.date + 1) : last);
        }
        if (isProbe && rows > 0) return { rows, next: null };
        const next = range.end;
        isShort = !range.isLast && !wholeTies && !isBegun;
        if (isShort) return { rows, next };
        // A link must never lead to an empty page.
        const isLast = range.isLast || (range.hasMore !== true && !(await isAnyBehind(next)));
        return isLast ? { rows, next: null } : withPace(next);
      };
      const parameters = { ...parametersOf(range.end), size };
      const statement = pageStatement(list, shape, parameters, query.separator);
      const settings = { ...statement.settings, ...(most && { max_rows_to_read: String(most) }) };
      const page = await send(
        { ...statement, settings },
        (answer) => openPage(answer, size, endOfRows, signal),
        signal,
      );
      isBegun = true;
      if (!isShort) return page;
      page.records.destroy();
      return null;
    };

    const isAnyBehind = async (position: PagePosition): Promise<boolean> => {
      const { pace: _, ...rest } = query;
      const page = await readPage({ ...rest, after: position, pageSize: 1, wholeTies: false }, true);
      for await (const _record of page.records) return true;
      return false;
    };

    let hasExceptions = false;
    // Over shards all rows of a range are sorted.
    if (pace !== undefined && list.isGuessed === true && !wholeTies && !sharded) {
      const end = before(Math.min(after.date + lengthOf(pace, pageSize), to));
      const shape = await askForConditions.conditionsAtOnce(list.candidates, parametersOf(end), signal);
      hasExceptions = shape === null;
      if (shape !== null) {
        const most = GUESSED_ROWS + GUESSED_ROWS_PER_RECORD * pageSize;
        const range = { end, isLast: end.date === to, first: after.date };
        const page = await open(range, shape, pageSize, most).catch((error: unknown) => {
          // The pace in the link would meet any error again and again.
          if (!(error instanceof WarehouseError) || isAwayError(error) || signal?.aborted === true)
            throw error;
          return null;
        });
        if (page !== null) return page;
      }
    }
    const first = Math.ceil(list.keysPerRecord * (pageSize + 1)) + SPARE_KEYS;
    for (let keys = first; ; keys *= KEYS_FACTOR) {
      const range = await choose(keys);
      if (range === null) return emptyPage({ rows: 0, next: null });
      const parameters = parametersOf(range.end);
      const shape = await askForConditions.conditions(list.candidates, parameters, signal, hasExceptions);
      const taken = wholeTies ? await takeWholeInstants(range, shape) : range;
      // Room for an instant beyond a page, and for records that come between the statements.
      const page = taken && (await open(taken, shape, pageSize + (wholeTies ? TIE_EXTENSION : 0)));
      if (page !== null) return page;
    }
  };
  return (query) => readPage(query);
};
