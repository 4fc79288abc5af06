/** The parts that all statements about conversations share. */
import { type Candidates, onceOnly, datesOfMoved } from "./identity-sql.ts";

// Of an attempt whose latest entry has no handoff_id, entries under a handoff_id are older forms.
const SHOWN = `arrayFilter(
      h -> empty(unnamed) OR h.3 = 'id' OR NOT has(unnamed, JSONExtractString(h.4, 'id')), attempts)`;
const MERGED = `groupArray((date_created, target, target_kind, entry)) AS attempts,
        groupArrayIf(target, target_kind = 'id') AS unnamed,
        concat('[', arrayStringConcat(arrayMap(h -> h.4, arraySort(${SHOWN})), ','), ']') AS entries`;

/**
 * The handoffs array of each conversation with handoffs: `conversation_id`, `entries`, and without several
 * dates `conversation_date_created`.
 *
 * @param keys SQL condition on `conversation_date_created` for the dates of the page
 * @param moved conversations of which all dates are read; null: none has moved
 */
export function handoffsOf(keys: string, moved: Candidates | null): string {
  // References, which have no entry, go after the merge: they replace entries of the same attempt.
  if (moved === null) {
    return `(SELECT conversation_date_created, conversation_id, ${MERGED}
      FROM handoffs FINAL
      PREWHERE ${keys}
      WHERE client_id = {client:String} AND notEmpty(entry)
      GROUP BY conversation_date_created, conversation_id)`;
  }
  return `(SELECT conversation_id, ${MERGED} FROM (
      SELECT conversation_id, date_created, target, target_kind, entry FROM handoffs
      WHERE client_id = {client:String} AND (${keys} OR conversation_date_created IN ${datesOfMoved(moved)})
      ORDER BY version DESC, uploaded_at DESC LIMIT 1 BY conversation_id, target, target_kind)
    WHERE notEmpty(entry) GROUP BY conversation_id)`;
}

const ENTRIES = "if(empty(h.entries), '[]', h.entries)";
/** The public JSON of a conversation `r` with its handoffs `h`. */
export const CONVERSATION = `concat(r.head, ${ENTRIES}, r.tail)`;
/** The same in three columns, which spares copying the text. */
export const RECORD_TEXTS = `r.head AS head, ${ENTRIES} AS entries, r.tail AS tail`;

/**
 * Joins conversations `r` with their handoffs `h`. A join reads its right side first: in sharded tables that
 * must be the records, since older handoffs would be wrong.
 */
export function withHandoffs(
  records: string,
  handoffs: string,
  { sharded, hasMoved }: { readonly sharded: boolean; readonly hasMoved: boolean },
): string {
  const joined = sharded
    ? `${handoffs} AS h RIGHT JOIN (${records}) AS r`
    : `(${records}) AS r LEFT JOIN ${handoffs} AS h`;
  const date = hasMoved ? "" : "h.conversation_date_created = r.date_created AND ";
  return `${joined} ON ${date}h.conversation_id = r.conversation_id`;
}

/**
 * Orders joined conversations and keeps one row of each, after the join: before it, ClickHouse sorts the
 * range once more.
 */
export const JOINED_IN_ORDER = `ORDER BY r.date_created, r.conversation_id ${onceOnly({ id: "r.conversation_id" })}`;
