import { isShown } from "./hidden-sql.ts";

const OF_CLIENT = "client_id = {client:String} AND end_user_id >= {from:String}";
// External ids and addresses may differ between versions, so FINAL must pick the live version first.
const ofExternalId = (selected: boolean): string =>
  selected ? "has(external_ids, {external_id:String})" : "true";

/** SQL for the id of the row behind the first `rows` rows of all versions; no row when there are fewer. */
export const END_USER_STEP = `SELECT end_user_id FROM end_users WHERE ${OF_CLIENT}
    ORDER BY client_id, end_user_id LIMIT 1 OFFSET {rows:UInt32}`;

/**
 * SELECT of the public JSON of the live end users from one id to another in order, as `record`. Parameters:
 * client, from, external_id; `behind`, the first id that is no longer read, where it is bounded.
 */
export const endUsersInRange = (shape: {
  readonly selected: boolean;
  readonly hiding: boolean;
  readonly bounded: boolean;
}): string => `SELECT record FROM end_users FINAL
    WHERE ${OF_CLIENT} AND ${shape.bounded ? "end_user_id < {behind:String}" : "true"} AND ${ofExternalId(shape.selected)} AND ${isShown("end_user", shape.hiding, null)}
    ORDER BY client_id, end_user_id`;

/**
 * End users from an id on, inclusive. Head line, also without records: records, 1 when another page follows,
 * hexadecimal digits of the id at which that one starts. Parameters: client, from, size, external_id.
 */
export function endUsers({
  selected,
  hiding,
}: {
  readonly selected: boolean;
  readonly hiding: boolean;
}): string {
  const source =
    selected || hiding
      ? `end_users FINAL WHERE ${OF_CLIENT} AND ${ofExternalId(selected)} AND ${isShown("end_user", hiding, null)}`
      : `end_users WHERE ${OF_CLIENT} GROUP BY client_id, end_user_id`;
  const head = `concat(toString(least(length(found), {size:UInt32})), ' ',
      toString(toUInt8(length(found) > {size:UInt32})), ' ', hex(found[{size:UInt32} + 1]), '\\n')`;
  return `WITH
    (SELECT groupArray(id) FROM (SELECT end_user_id AS id FROM ${source}
      ORDER BY client_id, end_user_id LIMIT {size:UInt32} + 1)) AS found,
    arraySlice(found, 1, {size:UInt32}) AS ids
    SELECT concat(if(rowNumberInAllBlocks() = 0, ${head}, ''), record)
    FROM (SELECT '' AS record WHERE empty(found) UNION ALL SELECT record FROM end_users FINAL
      WHERE ${OF_CLIENT} AND end_user_id <= ids[-1] AND cityHash64(end_user_id) IN (SELECT cityHash64(arrayJoin(ids)))
      ORDER BY client_id, end_user_id)
    FORMAT CustomSeparated`;
}
