/**
 * The SQL of the pages. Each page is one query: it first collects the keys of the page, then reads exactly
 * these records, so a record that arrives meanwhile cannot push another one out of the page. The first row
 * starts with a line that describes the page; the records follow, separated by commas.
 *
 * Parameters: client, since, to (µs), after_date (µs) and after_id (the position behind which the page starts),
 * size (records a page), reach (how many keys are looked at to find its end; larger than size), for messages of one
 * conversation its id as conversation, for these and for updates candidates (how many rows are looked at, of which
 * some are superseded; larger than size).
 */

/**
 * positioned: the page starts behind a position, not at the start of the window. spread: the tables lie on several
 * servers, so that every part of the query sees them as they are when it is run, and not as the part before it did.
 */
export type PageShape = {
  readonly positioned: boolean;
  readonly wholeTies: boolean;
  readonly spread: boolean;
};

/** A parameter in µs as a value of a date column. */
export const micros = (parameter: string): string => `fromUnixTimestamp64Micro({${parameter}:Int64}, 'UTC')`;

// Written so that it prunes by all columns of the primary key; a comparison of tuples prunes only the first.
function window(date: string, id: string, positioned: boolean): string {
  const lower = positioned
    ? `${date} >= ${micros("after_date")} AND (${date} > ${micros("after_date")} OR ${id} > {after_id:String})`
    : `${date} >= ${micros("since")}`;
  return `client_id = {client:String} AND ${lower} AND ${date} < ${micros("to")}`;
}

// How many of `keys`, sorted (date, id) pairs, belong to the page. With whole ties: the longest run of whole
// instants that fits, or, when the first instant alone is larger than a page, that instant as far as `reach`.
const PLAIN_END = "least(length(keys), {size:UInt32})";
const WHOLE_TIE_END = `multiIf(
    length(keys) <= {size:UInt32}, length(keys),
    keys[{size:UInt32} + 1].1 != keys[{size:UInt32}].1, toUInt64({size:UInt32}),
    keys[{size:UInt32} + 1].1 != keys[1].1, arrayCount(k -> k.1 < keys[{size:UInt32} + 1].1, keys),
    arrayCount(k -> k.1 = keys[1].1, keys) < length(keys), arrayCount(k -> k.1 = keys[1].1, keys),
    length(keys) < {reach:UInt32}, length(keys),
    toUInt64({reach:UInt32} - 1))`;

// From `found`, the sorted keys within reach: page = (records, date and id of the last, 1 when its instant is
// given out whole, 1 when keys lie behind it).
function pageOfFound(wholeTies: boolean): string {
  return `(SELECT (n, keys[n].1, keys[n].2,
      toUInt8(n = length(keys) OR keys[n + 1].1 != keys[n].1), toUInt8(n < length(keys)))
    FROM (SELECT keys, ${wholeTies ? WHOLE_TIE_END : PLAIN_END} AS n
      FROM (SELECT groupArray((k.1, k.2)) AS keys FROM (SELECT arrayJoin(found) AS k)))) AS page`;
}

/** Columns of the keys that belong to the page. */
function keysOfPage(columns: string): string {
  return `SELECT ${columns} FROM (SELECT arrayJoin(found) AS k) WHERE k.1 < page.2 OR (k.1 = page.2 AND k.2 <= page.3)`;
}

// Sets of keys are compared by hash. In this place 64 bits do: a collision could only let a newcomer in.
// A hash spares the analysis of ten thousand keys against the index; the range beside it prunes as well.
function inPage(date: string, id: string): string {
  return `cityHash64(${date}, ${id}) IN (${keysOfPage("cityHash64(k.1, k.2)")})`;
}

/** Whether more records may follow the page, and how many rows up to its end it had to look at. */
type PageCounts = { readonly more: string; readonly needed?: string };

const MORE_KEYS = { more: "page.5" };
const MORE_CANDIDATES = { more: "(page.5 OR bound.1 >= {candidates:UInt32})" };

/** records, 1 when keys lie behind the page, 1 when more records may follow, date of the last in µs, 1 when its instant is whole, base64 of the id of the last, rows that were needed. */
function headLine({ more, needed = "page.1" }: PageCounts): string {
  return `concat(toString(page.1), ' ', toString(page.5), ' ', toString(${more}), ' ', toString(toUnixTimestamp64Micro(page.2)), ' ',
      toString(page.4), ' ', base64Encode(page.3), ' ', toString(${needed}), '\\n')`;
}

// Numbering happens behind the sort, on one stream.
function output(record: string, from: string, counts: PageCounts): string {
  return `SELECT concat(if(rowNumberInAllBlocks() = 0, ${headLine(counts)}, ''), record)
    FROM (SELECT ${record} AS record FROM ${from})
    FORMAT CustomSeparated`;
}

const MERGED_HANDOFFS = `concat('[', arrayStringConcat(
      arrayMap(h -> h.4, arraySort(groupArray((date_created, target, target_kind, entry)))), ','), ']')`;

/** The handoffs array of each conversation that has handoffs. */
export function handoffsWhere(keys: string): string {
  return `(SELECT conversation_date_created, conversation_id, ${MERGED_HANDOFFS} AS entries
      FROM handoffs FINAL
      PREWHERE ${keys}
      WHERE client_id = {client:String}
      GROUP BY conversation_date_created, conversation_id)`;
}

/** The public JSON of a conversation `r` with its handoffs `h`. */
export const CONVERSATION = "concat(r.head, if(empty(h.entries), '[]', h.entries), r.tail)";

/**
 * The conversations of `records` as `r`, each with its row of `handoffs` as `h`, in order. A join reads its right side
 * first: of spread tables the records, for handoffs that are older than their record would be wrong.
 */
export function withHandoffs(records: string, handoffs: string, order: string, spread: boolean): string {
  const joined = spread
    ? `${handoffs} AS h RIGHT JOIN (${records}) AS r`
    : `(${records}) AS r LEFT JOIN ${handoffs} AS h`;
  return `${joined}
      ON h.conversation_date_created = r.date_created AND h.conversation_id = r.conversation_id
      ORDER BY ${order}, r.conversation_id`;
}

/** Conversations by date_created. */
export function conversationsByCreation({ positioned, wholeTies, spread }: PageShape): string {
  const range = window("date_created", "conversation_id", positioned);
  const from = positioned ? "after_date" : "since";
  const records = `SELECT date_created, conversation_id, head, tail FROM conversations FINAL
      WHERE ${range} AND date_created <= page.2 AND ${inPage("date_created", "conversation_id")}`;
  const handoffs = handoffsWhere(
    `conversation_date_created >= ${micros(from)} AND conversation_date_created <= page.2`,
  );
  return `WITH
    (SELECT arraySort(groupArray((d, id))) FROM
      (SELECT date_created AS d, conversation_id AS id FROM conversations WHERE ${range}
        GROUP BY client_id, date_created, conversation_id
        ORDER BY client_id, date_created, conversation_id LIMIT {reach:UInt32})) AS found,
    ${pageOfFound(wholeTies)}
    ${output(CONVERSATION, withHandoffs(records, handoffs, "r.date_created", spread), MORE_KEYS)}`;
}

/** Messages by date_created. */
export function messagesByCreation({ positioned, wholeTies }: PageShape): string {
  const range = window("date_created", "message_id", positioned);
  const records = `messages FINAL
      WHERE ${range} AND date_created <= page.2 AND ${inPage("date_created", "message_id")}
      ORDER BY client_id, date_created, message_id`;
  return `WITH
    (SELECT arraySort(groupArray((d, id))) FROM
      (SELECT date_created AS d, message_id AS id FROM messages WHERE ${range}
        GROUP BY client_id, date_created, message_id
        ORDER BY client_id, date_created, message_id LIMIT {reach:UInt32})) AS found,
    ${pageOfFound(wholeTies)}
    ${output("record", records, MORE_KEYS)}`;
}

function ofConversation(positioned: boolean): string {
  return `${window("date_created", "message_id", positioned)} AND conversation_id = {conversation:String}`;
}

// (messages that are looked at, date of the last); whole instants are looked at.
function boundOfConversation(positioned: boolean): string {
  return `(SELECT (count(), max(d)) FROM (SELECT DISTINCT date_created AS d, message_id FROM messages
      WHERE ${ofConversation(positioned)}
      ORDER BY client_id, conversation_id, date_created, message_id LIMIT {candidates:UInt32}))`;
}

/**
 * Messages of one conversation by date_created. Candidates are the next messages of which a row names the
 * conversation, in the order of the projection; only FINAL, which a projection cannot give, knows which of them
 * are live, for the conversation may differ between versions of a message. A page that is not full may be followed
 * by more.
 */
export function messagesOfConversation({ positioned, wholeTies, spread }: PageShape): string {
  const range = `${ofConversation(positioned)} AND date_created <= bound.2`;
  // Of columns of the key alone, so that all versions of a message pass it before they are merged.
  const candidates = (columns: string): string => `(SELECT ${columns} FROM messages WHERE ${range})`;
  // Of equal versions the later insert wins; the instant of upload tells them apart.
  const found = `messages
      WHERE ${range} AND date_created <= page.2
        AND sipHash128(date_created, message_id, version, uploaded_at)
          IN (${keysOfPage("sipHash128(k.1, k.2, k.3, k.4)")})
      ORDER BY client_id, conversation_id, date_created, message_id LIMIT 1 BY date_created, message_id`;
  // A row that was found may be merged into a newer one before another part of the query reads it.
  const latest = `messages FINAL
      PREWHERE date_created IN (${keysOfPage("k.1")}) AND ${inPage("date_created", "message_id")}
      WHERE ${range} AND date_created <= page.2 ORDER BY client_id, date_created, message_id`;
  const records = spread ? latest : found;
  return `WITH
    ${boundOfConversation(positioned)} AS bound,
    (SELECT arraySort(groupArray((d, id, v, u))) FROM
      (SELECT date_created AS d, message_id AS id, version AS v, uploaded_at AS u FROM messages FINAL
        PREWHERE date_created IN ${candidates("date_created")}
          AND cityHash64(date_created, message_id) IN ${candidates("cityHash64(date_created, message_id)")}
        WHERE ${range}
        ORDER BY client_id, date_created, message_id LIMIT {reach:UInt32})) AS found,
    ${pageOfFound(wholeTies)}
    ${output("record", records, MORE_CANDIDATES)}`;
}

// (rows of the update index that are looked at, date of the last); whole instants are looked at. Of spread tables that
// are looked at to their end, what comes meanwhile counts: it may be the live version of a record before it.
function boundOfCandidates(positioned: boolean, spread: boolean): string {
  const last = spread ? `if(count() < {candidates:UInt32}, ${micros("to")}, max(d))` : "max(d)";
  return `(SELECT (count(), ${last}) FROM (SELECT date_updated AS d FROM conversation_updates
      WHERE ${window("date_updated", "conversation_id", positioned)}
      ORDER BY client_id, date_updated LIMIT {candidates:UInt32}))`;
}

// How many of them lie before the end of the page.
function neededCandidates(positioned: boolean): string {
  return `(SELECT count() FROM conversation_updates
      WHERE ${window("date_updated", "conversation_id", positioned)} AND date_updated <= page.2)`;
}

// 128 bits, for here a collision would show a superseded record.
/**
 * Conversations by date_updated. Candidates are the next rows of the update index; those are live whose version
 * is the latest in the conversations table. A page that is not full may be followed by more candidates.
 */
export function conversationsByUpdate({ positioned, wholeTies, spread }: PageShape): string {
  const range = `${window("date_updated", "conversation_id", positioned)} AND date_updated <= bound.2`;
  // A query sees each table as it was when it first named it. The part without rows names the conversations first:
  // the update index, written before them, then holds every version that is live.
  const records = `SELECT date_updated, date_created, conversation_id, head, tail FROM conversations WHERE false
      UNION ALL SELECT date_updated, date_created, conversation_id, head, tail FROM conversation_updates FINAL
      PREWHERE sipHash128(date_updated, conversation_id, version) IN (${keysOfPage("sipHash128(k.1, k.2, k.3)")})
      WHERE ${range} AND date_updated <= page.2`;
  const handoffs = handoffsWhere(`conversation_date_created IN (${keysOfPage("k.4")})`);
  return `WITH
    ${boundOfCandidates(positioned, spread)} AS bound,
    latest AS (SELECT sipHash128(date_created, conversation_id, max(version)) FROM conversations
      WHERE client_id = {client:String}
        AND date_created IN (SELECT date_created FROM conversation_updates WHERE ${range})
      GROUP BY client_id, date_created, conversation_id),
    (SELECT arraySort(groupArray((d, id, v, c))) FROM
      (SELECT DISTINCT date_updated AS d, conversation_id AS id, version AS v, date_created AS c
        FROM conversation_updates WHERE ${range} AND sipHash128(date_created, conversation_id, version) IN latest
        ORDER BY d, id, c LIMIT {reach:UInt32})) AS found,
    ${pageOfFound(wholeTies)}
    ${output(CONVERSATION, withHandoffs(records, handoffs, "r.date_updated", spread), {
      ...MORE_CANDIDATES,
      needed: neededCandidates(positioned),
    })}`;
}

/** How many candidates the update index holds, up to `candidates`: tells a page without live rows from the end. */
export function countUpdates(positioned: boolean): string {
  return `SELECT ${boundOfCandidates(positioned, false)}.1`;
}

/** The same for messages of which a row names the conversation. */
export function countMessages(positioned: boolean): string {
  return `SELECT ${boundOfConversation(positioned)}.1`;
}

/**
 * End users from an id on, that one included. Its describing line: records, 1 when a page follows, base64 of the id
 * at which it starts. Parameters: client, from, size, external_id.
 */
export function endUsers({ selected }: { readonly selected: boolean }): string {
  const range = "client_id = {client:String} AND end_user_id >= {from:String}";
  // The ids by which other systems know a person may differ between versions: only FINAL knows those that count.
  const source = selected
    ? `end_users FINAL WHERE ${range} AND has(external_ids, {external_id:String})`
    : `end_users WHERE ${range} GROUP BY client_id, end_user_id`;
  const head = `concat(toString(least(length(found), {size:UInt32})), ' ',
      toString(toUInt8(length(found) > {size:UInt32})), ' ', base64Encode(found[{size:UInt32} + 1]), '\\n')`;
  return `WITH
    (SELECT groupArray(id) FROM (SELECT end_user_id AS id FROM ${source}
      ORDER BY client_id, end_user_id LIMIT {size:UInt32} + 1)) AS found,
    arraySlice(found, 1, {size:UInt32}) AS ids
    SELECT concat(if(rowNumberInAllBlocks() = 0, ${head}, ''), record)
    FROM (SELECT record FROM end_users FINAL
      WHERE ${range} AND end_user_id <= ids[-1] AND cityHash64(end_user_id) IN (SELECT cityHash64(arrayJoin(ids)))
      ORDER BY client_id, end_user_id)
    FORMAT CustomSeparated`;
}
