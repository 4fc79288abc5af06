import type { ListName } from "../lists/changes.ts";
import { valueTexts } from "../lists/json-parts.ts";
import { CopyError } from "./exit-code.ts";

export const ID_FIELD = {
  conversations: "_id",
  messages: "_id",
  end_users: "end_user_id",
} as const satisfies Record<ListName, string>;

const ID = /^\{"(?:_id|end_user_id)":("(?:[^"\\]|\\.)*")/;
const DELETION = /^\{"(?:_id|end_user_id)":"(?:[^"\\]|\\.)*","deleted":true,"deleted_at":"/;
const DELETED = ',"deleted":true,"deleted_at":"';

type Identified = Partial<Record<"_id" | "end_user_id", string>>;

/** For errors, which never quote a line. */
type Where = () => string;
const SOMEWHERE: Where = () => "a line of the copy";

/** @throws CopyError */
export const recordOf = (line: string, where: Where = SOMEWHERE): Identified => {
  const broken = (): CopyError => new CopyError(`${where()}, of ${line.length} characters, is no record`);
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    throw broken();
  }
  if (typeof record !== "object" || record === null) throw broken();
  return record;
};

/** Relies on the id being first. @throws CopyError */
export const idOf = (line: string, where: Where = SOMEWHERE): string => {
  const [, id] = ID.exec(line) ?? [];
  // Such an id may hold an escape that JSON does not have.
  const record = id === undefined || id.includes("\\") ? recordOf(line, where) : { _id: id.slice(1, -1) };
  const found = record._id ?? record.end_user_id;
  if (found === undefined) throw new CopyError(`${where()}, of ${line.length} characters, has no id`);
  return found;
};

export const isDeletion = (line: string): boolean => DELETION.test(line);

export const countDeletions = (bytes: Uint8Array): number => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!buffer.includes(DELETED)) return 0;
  return buffer.toString().split("\n").filter(isDeletion).length;
};

/** Values as written; deletions stay unchanged. */
export const selectFields = (line: string, list: ListName, fields: readonly string[]): string => {
  if (isDeletion(line)) return line;
  const values = valueTexts(line);
  const kept = [ID_FIELD[list], ...fields.filter((field) => field !== ID_FIELD[list])];
  return `{${kept.map((field) => `"${field}":${values.get(field) ?? "null"}`).join(",")}}`;
};
