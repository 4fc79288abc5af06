import { isShown } from "./hidden-sql.ts";

/**
 * End users from an id on, inclusive. Head line: records, 1 when another page follows, base64 of the id at
 * which that one starts. Parameters: client, from, size, external_id.
 */
export function endUsers({
  selected,
  hiding,
}: {
  readonly selected: boolean;
  readonly hiding: boolean;
}): string {
  const range = "client_id = {client:String} AND end_user_id >= {from:String}";
  // External ids and addresses may differ between versions, so FINAL must pick the live version first.
  const ofId = selected ? "has(external_ids, {external_id:String})" : "true";
  const source =
    selected || hiding
      ? `end_users FINAL WHERE ${range} AND ${ofId} AND ${isShown("end_user", hiding, null)}`
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
