import { type Candidates, onceOnly, datesOfMoved } from "./identity-sql.ts";
import type { ReadShape } from "./page-sql.ts";

// Of an attempt whose latest entry has no handoff_id, entries under a handoff_id are older forms.
const SHOWN = `arrayFilter(
      h -> empty(unnamed) OR h.3 = 'id' OR NOT has(unnamed, JSONExtractString(h.4, 'id')), attempts)`;
const MERGED = `groupArray((date_created, target, target_kind, entry)) AS attempts,
        groupArrayIf(target, target_kind = 'id') AS unnamed,
        concat('[', arrayStringConcat(arrayMap(h -> h.4, arraySort(${SHOWN})), ','), ']') AS entries`;

/** `moved`: all their dates are read; null: none has moved. */
export function handoffsOf(keys: string, moved: Candidates | null): string {
  // References, without entry, go after the merge: they replace entries of the same attempt.
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
export const CONVERSATION = `concat(r.head, ${ENTRIES}, r.tail)`;
/** Three columns spare copying the text. */
export const RECORD_TEXTS = `r.head AS head, ${ENTRIES} AS entries, r.tail AS tail`;

/** A join reads its right side first: over shards the records, since older handoffs would be wrong. */
export function withHandoffs(records: string, handoffs: string, { sharded, hasMoved }: ReadShape): string {
  const joined = sharded
    ? `${handoffs} AS h RIGHT JOIN (${records}) AS r`
    : `(${records}) AS r LEFT JOIN ${handoffs} AS h`;
  const date = hasMoved ? "" : "h.conversation_date_created = r.date_created AND ";
  return `${joined} ON ${date}h.conversation_id = r.conversation_id`;
}

/** After the join: before it, ClickHouse sorts the range once more. */
export const JOINED_IN_ORDER = `ORDER BY r.date_created, r.conversation_id ${onceOnly({ id: "r.conversation_id" })}`;
