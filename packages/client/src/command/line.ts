import type { ListName } from "../lists/changes.ts";
import { valueTexts } from "../lists/json-parts.ts";
import { CopyError } from "./exit-code.ts";

/** The name that the id has in the records of a list. */
export const ID_FIELD = {
  conversations: "_id",
  messages: "_id",
  end_users: "end_user_id",
} as const satisfies Record<ListName, string>;

const ID = /^\{"(?:_id|end_user_id)":("(?:[^"\\]|\\.)*")/;
const DELETION = /^\{"(?:_id|end_user_id)":"(?:[^"\\]|\\.)*","deleted":true,"deleted_at":"/;
const DELETED = ',"deleted":true,"deleted_at":"';

type Identified = Partial<Record<"_id" | "end_user_id", string>>;

/** The record of a line of a copy. @throws CopyError for a line that is none */
export const recordOf = (line: string): Identified => {
  const broken = (): CopyError => new CopyError(`a line of the copy is no record: ${line.slice(0, 200)}`);
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    throw broken();
  }
  if (typeof record !== "object" || record === null) throw broken();
  return record;
};

/** The id of a line, which the interface puts first. @throws CopyError for a line that is no record */
export const idOf = (line: string): string => {
  const [, id] = ID.exec(line) ?? [];
  if (id !== undefined) return JSON.parse(id) as string;
  const record = recordOf(line);
  const found = record._id ?? record.end_user_id;
  if (found === undefined) throw new CopyError(`a line of the copy has no id: ${line.slice(0, 200)}`);
  return found;
};

/** True for a line that says that a record is gone. */
export const isDeletion = (line: string): boolean => DELETION.test(line);

/** How many lines of a block are deletions. */
export const countDeletions = (bytes: Uint8Array): number => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!buffer.includes(DELETED)) return 0;
  return buffer.toString().split("\n").filter(isDeletion).length;
};

/** Leaves the id and these fields of a record, their values as they stand; deletions stay as they are. */
export const selectFields = (line: string, list: ListName, fields: readonly string[]): string => {
  if (isDeletion(line)) return line;
  const values = valueTexts(line);
  const kept = [ID_FIELD[list], ...fields.filter((field) => field !== ID_FIELD[list])];
  return `{${kept.map((field) => `"${field}":${values.get(field) ?? "null"}`).join(",")}}`;
};
