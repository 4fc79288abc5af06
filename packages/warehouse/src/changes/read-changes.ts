import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { RECORD_KINDS, type RecordKind } from "@conversation-export/domain";
import type { AskForFacts } from "../pages/ask-facts.ts";
import { createLookAhead } from "../pages/look-ahead.ts";
import { askNearFirst } from "../pages/near-part.ts";
import { boundOf } from "../pages/sql/page-sql.ts";
import { PAGE_SETTINGS, type PageStatement, spreadSettings } from "../pages/page-statements.ts";
import { parsePageHead, splitHead } from "../pages/page-stream.ts";
import { boundOfAnswer } from "../pages/read-page.ts";
import type { SendStatement } from "../pages/send-statement.ts";
import type { ReadChanges } from "../pages/page.ts";
import { DATED_KINDS } from "../tables/record-dates.ts";
import { changeCandidates, changeOrder, changesOf } from "./changes-sql.ts";

/** Entries per record, assumed for a client without a previous page. */
const INITIAL_ENTRIES = 1.5;
const SPARE_ENTRIES = 10;
/** A page looks at no more, since it reads the texts of all records with entries; it may be short then. */
const MAX_ENTRIES_PER_RECORD = 4;

export const createReadChanges = (deps: {
  readonly send: SendStatement;
  readonly askForFacts: AskForFacts;
  readonly isSpread: () => Promise<boolean>;
  readonly notedDates: () => Promise<number>;
}): ReadChanges => {
  const { send, askForFacts, isSpread, notedDates } = deps;
  const newLookAhead = () => createLookAhead({ initial: INITIAL_ENTRIES, spare: SPARE_ENTRIES });
  const lookAheads = {
    conversation: newLookAhead(),
    message: newLookAhead(),
    end_user: newLookAhead(),
  } as const satisfies Readonly<Record<RecordKind, unknown>>;

  return async ({ clientId, kind, after, settled, pageSize, separator = ",", signal }) => {
    const end = { date: settled, id: "" };
    if (after.date >= settled) {
      return { rows: 0, next: after, isLast: true, records: Readable.from([]) };
    }
    const spread = await isSpread();
    const noted = await notedDates();
    const lookAhead = lookAheads[kind];
    const rows = Math.min(
      lookAhead.candidates(clientId, pageSize),
      MAX_ENTRIES_PER_RECORD * pageSize + SPARE_ENTRIES,
    );
    const range = { client: clientId, to: settled, after_date: after.date, after_id: after.id };
    const boundStatement = (to: number): PageStatement => ({
      name: "changes.bound",
      sql: `${boundOf(changeOrder(kind))} FORMAT TabSeparatedRaw`,
      parameters: { ...range, to, rows },
      settings: { max_threads: 1, ...spreadSettings(spread, false) },
    });
    const bound = await askNearFirst(
      after.date,
      settled,
      async (to) => boundOfAnswer(await send(boundStatement(to), text, signal)),
      (found) => found.rows === rows,
    );
    if (bound.rows === 0) return { rows: 0, next: end, isLast: true, records: Readable.from([]) };
    const atEnd = bound.rows < rows;
    const within = { ...range, bound: atEnd ? settled - 1 : bound.date, noted };
    const dated = DATED_KINDS.find((one) => one === kind);
    const candidates = dated === undefined ? null : changeCandidates(dated);
    const { several, hiding } = await askForFacts(candidates, within, signal);
    const statement: PageStatement = {
      name: `changes.${RECORD_KINDS[kind].list}`,
      sql: changesOf(kind, { spread, severalDates: several > 0, hiding }),
      parameters: { ...within, size: pageSize },
      settings: {
        ...PAGE_SETTINGS,
        ...spreadSettings(spread, several > 0),
        format_custom_row_between_delimiter: separator,
      },
    };
    const { head, records } = await send(statement, (stream) => splitHead(stream, parsePageHead), signal);
    lookAhead.learn(clientId, head.needed, bound.rows);
    if (head.keysBehind) {
      return { rows: head.rows, next: head.last, isLast: false, records };
    }
    return {
      rows: head.rows,
      // The range holds all entries of its last instant.
      next: atEnd ? end : { date: bound.date + 1, id: "" },
      isLast: atEnd,
      records,
    };
  };
};
