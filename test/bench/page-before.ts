import { PAGED_LISTS, pageStatement } from "@conversation-export/warehouse";
import type { PageQuery } from "@conversation-export/warehouse";

const micros = (parameter: string): string => `fromUnixTimestamp64Micro({${parameter}:Int64}, 'UTC')`;

const RANGE = `client_id = {client:String} AND date_created >= ${micros("since")} AND date_created < ${micros("to")}`;

const PAGE = `(SELECT (n, keys[n].1, keys[n].2,
      toUInt8(n = length(keys) OR keys[n + 1].1 != keys[n].1), toUInt8(n < length(keys)))
    FROM (SELECT keys, least(length(keys), {size:UInt32}) AS n
      FROM (SELECT groupArray((k.1, k.2)) AS keys FROM (SELECT arrayJoin(found) AS k)))) AS page`;

const HEAD = `concat(toString(page.1), ' ', toString(page.5), ' ', toString(page.5), ' ',
      toString(toUnixTimestamp64Micro(page.2)), ' ', toString(page.4), ' ', base64Encode(page.3), ' ', toString(page.1), '\\n')`;

const HANDOFFS = `(SELECT conversation_date_created, conversation_id, concat('[', arrayStringConcat(
        arrayMap(h -> h.4, arraySort(groupArray((date_created, target, target_kind, entry)))), ','), ']') AS entries
      FROM handoffs FINAL
      PREWHERE conversation_date_created >= ${micros("since")} AND conversation_date_created <= page.2
      WHERE client_id = {client:String}
      GROUP BY conversation_date_created, conversation_id)`;

/** The statement of a page by creation while a record was its date and its id, as it was sent then. */
const PAGE_BEFORE = `WITH
    (SELECT arraySort(groupArray((d, id))) FROM
      (SELECT date_created AS d, conversation_id AS id FROM conversations WHERE ${RANGE}
        GROUP BY client_id, date_created, conversation_id
        ORDER BY client_id, date_created, conversation_id LIMIT {reach:UInt32})) AS found,
    ${PAGE}
    SELECT concat(if(rowNumberInAllBlocks() = 0, ${HEAD}, ''), record)
    FROM (SELECT concat(r.head, if(empty(h.entries), '[]', h.entries), r.tail) AS record
      FROM (SELECT date_created, conversation_id, head, tail FROM conversations FINAL
        WHERE ${RANGE} AND date_created <= page.2 AND cityHash64(date_created, conversation_id) IN
          (SELECT cityHash64(k.1, k.2) FROM (SELECT arrayJoin(found) AS k)
            WHERE k.1 < page.2 OR (k.1 = page.2 AND k.2 <= page.3))) AS r
      LEFT JOIN ${HANDOFFS} AS h
      ON h.conversation_date_created = r.date_created AND h.conversation_id = r.conversation_id
      ORDER BY r.date_created, r.conversation_id)
    FORMAT CustomSeparated`;

/** A page of conversations by creation as it was read while its identity included the date; one statement. */
export const pageBefore = (query: PageQuery) => {
  const { parameters, settings } = pageStatement(PAGED_LISTS.conversationsByCreation, query, {
    bound: query.to,
  });
  return { sql: PAGE_BEFORE, parameters, settings: { ...settings, optimize_aggregation_in_order: 1 } };
};
