import type { RecordKind } from "@conversation-export/domain";
import { isShown } from "./erased-sql.ts";
import { FIRST_ROWS, pageRows, RECORD_COLUMN } from "./page-sql.ts";

export const END_USERS_KIND = "end_user" satisfies RecordKind;

const OF_CLIENT = "client_id = {client:String} AND end_user_id >= {from:String}";
// External ids may differ between versions, so FINAL must pick the live one first.
const ofExternalId = (selected: boolean): string =>
  selected ? "has(external_ids, {external_id:String})" : "true";

export const END_USER_STEP = `SELECT end_user_id FROM end_users WHERE ${OF_CLIENT}
    ORDER BY client_id, end_user_id LIMIT 1 OFFSET {rows:UInt32}`;

/** `behind`: exclusive. */
export const endUsersInRange = (
  columns: string,
  shape: { readonly selected: boolean; readonly hasErased: boolean; readonly bounded: boolean },
): string => `SELECT ${columns} FROM end_users FINAL
    WHERE ${OF_CLIENT} AND ${shape.bounded ? "end_user_id < {behind:String}" : "true"} AND ${ofExternalId(shape.selected)} AND ${isShown(END_USERS_KIND, shape.hasErased, null)}
    ORDER BY client_id, end_user_id`;

export const endUsers = (shape: { readonly selected: boolean; readonly hasErased: boolean }): string =>
  pageRows(
    RECORD_COLUMN,
    `${endUsersInRange("end_user_id AS id, toDateTime64(0, 6, 'UTC') AS d, record", { ...shape, bounded: false })} ${FIRST_ROWS}`,
  );
